// Parts of packages by their files, for a thread that reads documents. Their front doors load 240 files, two thirds of
// the processor time of its start: linkedom one for each class, and turndown a parser of HTML that is never used.

declare module 'turndown/lib/turndown.browser.cjs.js' {
  export { default } from 'turndown';
}
