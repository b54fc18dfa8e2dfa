/**
 * `CHROMIUM_SANDBOX`. `auto`: with the sandbox where it works, else without and with a warning;
 * `require`: no JavaScript crawls without it; `off`: without.
 */
export type SandboxMode = 'auto' | 'require' | 'off';

/** Logged when Chromium runs without its sandbox although the operator has not asked for that. */
export const NO_SANDBOX =
  'Chromium runs without its sandbox: a web page that breaks out of it has all rights of this process. Run the service as a user other than root, or set CHROMIUM_SANDBOX';

/** Whether this process runs as root, for which Chromium has no sandbox. */
export function runsAsRoot(): boolean {
  return process.getuid?.() === 0;
}
