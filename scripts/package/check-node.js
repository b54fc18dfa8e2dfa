const OLDEST = 'OLDEST_NODE';

const [major, minor] = process.versions.node.split('.').map(Number);
const [oldestMajor, oldestMinor] = OLDEST.split('.').map(Number);
if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
  process.stderr.write(
    `queued-crawler needs Node ${OLDEST} or newer, and this is Node ${process.versions.node}.\n`,
  );
  process.exit(1);
}
