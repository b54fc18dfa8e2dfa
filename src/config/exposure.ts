import type { Config } from './config.ts';

/**
 * The warning for a service that other machines can reach without TLS; undefined if they cannot, or
 * if TLS is on. The service cannot see TLS that ends at a proxy in front of it.
 */
export function exposureWarning(config: Pick<Config, 'host' | 'tlsCertFile'>): string | undefined {
  if (config.tlsCertFile !== '' || isLoopback(config.host)) return undefined;
  return (
    `the service listens on ${config.host} without TLS: tokens and pages cross the network in ` +
    'clear text. Unless a proxy in front of it ends TLS and nothing else reaches this port, set ' +
    'TLS_CERT and TLS_KEY, or HOST=127.0.0.1.'
  );
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host);
}
