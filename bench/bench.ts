// `npm run bench`: backlogs of small pages from one host, or with `--real` lists as people have them.

if (process.argv.includes('--real')) await import('./real/real.ts');
else await import('./dispatch/dispatch.ts');
