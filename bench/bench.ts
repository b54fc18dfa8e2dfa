// `npm run bench`: backlogs of small pages from one host. With `--real` lists as people have them, with
// `--hosts` how many hosts share a crawler.

const [first, ...rest] = process.argv.slice(2);
if (process.argv.includes('--real')) await import('./real/real.ts');
else if (first === '--hosts') {
  process.argv.splice(2, rest.length + 1, ...rest);
  await import('./hosts.ts');
} else await import('./dispatch/dispatch.ts');
