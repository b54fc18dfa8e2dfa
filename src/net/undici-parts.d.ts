// Parts of undici by their files. Its front door also loads WebSockets, caches and mocks: three times the processor time of
// a start, and 7 MB more in each thread that crawls.

declare module 'undici/lib/core/connect.js' {
  export { buildConnector as default } from 'undici';
}

declare module 'undici/lib/core/errors.js' {
  export { errors as default } from 'undici';
}

declare module 'undici/lib/core/socks5-client.js' {
  import type { EventEmitter } from 'node:events';
  import type { Socket } from 'node:net';

  export class Socks5Client extends EventEmitter {
    constructor(socket: Socket, options: { readonly username: string; readonly password: string });
    handshake(): void;
    connect(address: string, port: number): void;
  }
}

declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici';
}
