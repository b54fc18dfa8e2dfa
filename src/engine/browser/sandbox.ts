/**
 * `CHROMIUM_SANDBOX`. `auto`: with the sandbox where it works, else without and with a warning;
 * `require`: no JavaScript crawls without it; `off`: without.
 */
export type SandboxWish = 'auto' | 'require' | 'off';

/** The warning. */
export const NO_SANDBOX =
  'Chromium runs without its sandbox: a web page that breaks out of it has all rights of this process. Run the service as a user other than root, or set CHROMIUM_SANDBOX';

/** Whether Chromium refuses its sandbox because of who runs it. */
export function runsAsRoot(): boolean {
  return process.getuid?.() === 0;
}
