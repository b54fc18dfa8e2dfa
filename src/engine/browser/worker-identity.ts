import type { Device } from './devices.ts';

/** What the browser has no command for in workers. */
type WorkerIdentity = Pick<Device, 'userAgent' | 'platform'>;

/**
 * A script for a worker that has not run yet. It changes only what differs from the device: shared
 * and service workers have the user agent that the browser was started with, and every worker the
 * platform of the machine.
 */
export function workerIdentityScript({ userAgent, platform }: WorkerIdentity): string {
  const appVersion = userAgent.replace(/^Mozilla\//, '');
  const values = JSON.stringify({ userAgent, appVersion, platform });
  return `for (const [name, value] of Object.entries(${values})) {
    if (navigator[name] === value) continue;
    const own = Object.getOwnPropertyDescriptor(WorkerNavigator.prototype, name);
    // The original getter throws for what is no navigator.
    const apply = (get, self) => Reflect.apply(get, self, []) && value;
    Object.defineProperty(WorkerNavigator.prototype, name, { ...own, get: new Proxy(own.get, { apply }) });
  }`;
}
