import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

/** The file system of an image, in which programs run. */
export interface Container {
  run(command: readonly string[]): {
    readonly ended: Promise<number | null>;
    /** Tells it to stop, as a container runtime does. */
    stop(): void;
    output(): string;
  };
}

/**
 * Mounts as a container with --read-only has them, then the program as uid 10001. It has the network
 * of this machine. PID 1 of the namespace is the program, so all ends with it.
 */
const SCRIPT = `
set -eu
root=$1 data=$2 dir=$3
shift 3
mount --bind "$root" "$root"
mount --bind "$data" "$root/data"
mount -t tmpfs -o mode=1777,noexec,nosuid,nodev tmpfs "$root/tmp"
mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs chroot --userspec=10001:10001 "$root" /usr/local/bin/node -e '
const [dir, ...command] = process.argv.slice(1);
process.chdir(dir);
process.execve(require("node:path").join("/usr/local/bin", command[0]), command, JSON.parse(process.env.CONTAINER_ENV));
' "$dir" "$@"
`;

const NAMESPACES = '--mount --pid --fork --kill-child --propagation private sh -c'.split(' ');

/** Makes a container of a mounted image, with a folder for its volume /data. */
export function runContainer(
  root: string,
  options: {
    readonly data: string;
    readonly env: Readonly<Record<string, string>>;
    readonly workingDir: string;
  },
): Container {
  return {
    run(command) {
      const child = spawn(
        'unshare',
        [...NAMESPACES, SCRIPT, 'sh', root, options.data, options.workingDir, ...command],
        { env: { PATH: process.env.PATH, CONTAINER_ENV: JSON.stringify(options.env) } },
      );
      let output = '';
      const read = (chunk: Buffer): void => {
        output += chunk.toString();
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      const ended = once(child, 'close').then(([code]) => code as number | null);
      // unshare itself ignores the signal.
      const stop = (): void => {
        const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
        process.kill(Number(children), 'SIGTERM');
      };
      return { ended, stop, output: () => output };
    },
  };
}
