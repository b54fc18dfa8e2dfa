import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';

// Writes the proto files of the API, and everything that they import, to a folder, so that any
// generator can read them: npm run proto:export -- FOLDER

const root = resolve(import.meta.dirname, '..');

/** The API, the details of its errors, and the health service of gRPC. */
const exported = [
  'proto/queuedcrawler',
  'node_modules/google-gax/build/protos/google/rpc/error_details.proto',
  'node_modules/google-gax/build/protos/google/rpc/status.proto',
  'node_modules/grpc-health-check/proto/health',
];

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error('Usage: npm run proto:export -- FOLDER');
  process.exitCode = 1;
} else {
  const paths = exported.flatMap((path) => ['--path', path]);
  execFileSync(
    join(root, 'node_modules/.bin/buf'),
    ['export', '.', ...paths, '--output', resolve(process.env.INIT_CWD ?? '.', folder)],
    { cwd: root, stdio: 'inherit' },
  );
}
