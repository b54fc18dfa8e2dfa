// Plain JavaScript, because an older Node cannot read the sources and would say only that.

if (Number(process.versions.node.split('.')[0]) < 24) {
  process.stderr.write(
    `queued-crawler needs Node 24 and this is Node ${process.versions.node}: run \`npm rebuild node\`, which installs the project's own, or install Node 24.\n`,
  );
  process.exit(1);
}
