import type { Clock } from './domain/clock.ts';
import { DomainError } from './domain/errors.ts';
import type { Adapter } from './rest/adapter.ts';
import type { MediaStore } from './store/store.ts';

/** Serves pictures at `/screenshots?id=`; their identifiers are not guessable, and they expire. */
export function screenshotAdapter(media: Pick<MediaStore, 'get'>, clock: Clock): Adapter {
  return {
    methods: ['GET'],
    path: '/screenshots',
    async handle(exchange) {
      const id = exchange.parameter('id') ?? '';
      const found = /^[0-9a-f]{56}$/.test(id) ? await media.get(id, clock.now()) : undefined;
      if (found === undefined) {
        throw new DomainError('not_found', 'screenshot_not_found', 'There is no such screenshot.');
      }
      const headers = {
        'content-type': found.contentType,
        'cache-control': 'private, max-age=3600',
      };
      return { status: 200, headers, body: found.bytes };
    },
  };
}
