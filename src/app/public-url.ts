import type { Config } from '../config/config.ts';

/** The base of the URLs in replies: `PUBLIC_URL`, else the address that the service listens on. */
export interface PublicUrl {
  /** Without a slash at the end; empty while a port that the system chooses is not known yet. */
  current(): string;
  /** Reports the address; a configured one stays. */
  listening(url: string): void;
}

/** Makes the base for this configuration. */
export function createPublicUrl(
  config: Pick<Config, 'publicUrl' | 'host' | 'port' | 'tlsCertFile'>,
): PublicUrl {
  let url = config.publicUrl.replace(/\/$/, '');
  if (url === '' && config.port !== 0) url = listenUrl(config, config.port);
  return {
    current: () => url,
    listening(actual) {
      if (url === '') url = actual;
    },
  };
}

/** The address of the service on this machine. */
export function listenUrl(config: Pick<Config, 'host' | 'tlsCertFile'>, port: number): string {
  return `${config.tlsCertFile === '' ? 'http' : 'https'}://${urlHost(config.host)}:${port}`;
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
