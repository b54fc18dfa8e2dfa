import type { ErrorKind } from '../src/domain/errors.ts';

/** One reason in docs/errors.md. */
export interface ErrorReason {
  readonly reason: string;
  /**
   * The kind of its `DomainError`, for every protocol; or the status of a reply that only REST has.
   */
  readonly as: readonly (ErrorKind | number)[];
  /** Set when only RPC clients get this reason. */
  readonly rpcOnly?: true;
  readonly meaning: string;
}

/**
 * Every reason that a client can receive. `test/unit/documents/errors-document.test.ts` compares
 * this table with the source: every reason that is thrown has a row, and every row is thrown
 * somewhere.
 */
export const errorTable: readonly ErrorReason[] = [
  // The token.
  {
    reason: 'missing_token',
    as: ['unauthenticated', 401],
    meaning: 'The call carries no token in path, query, header or message.',
  },
  {
    reason: 'invalid_token',
    as: ['unauthenticated'],
    meaning: 'No account has this token, or the account was removed.',
  },
  {
    reason: 'admin_token_not_set',
    as: ['unauthenticated'],
    meaning: 'The account service is off, as `ADMIN_TOKEN` is not set.',
  },
  {
    reason: 'wrong_token_type',
    as: ['forbidden'],
    meaning: "The crawler was made with the account's other token.",
  },
  {
    reason: 'too_many_test_deliveries',
    as: ['exhausted'],
    meaning: 'The account has sent ten test deliveries within the last minute.',
  },
  {
    reason: 'too_many_wrong_tokens',
    as: ['exhausted'],
    meaning: 'Too many wrong tokens came from this address.',
  },
  {
    reason: 'other_account',
    as: ['conflict'],
    meaning: 'The session of the console has a token of another account.',
  },
  {
    reason: 'other_origin',
    as: ['forbidden'],
    meaning: 'A page of another origin has called the sessions of the console.',
  },
  // The parameters.
  {
    reason: 'missing_name',
    as: ['invalid'],
    meaning: 'A crawler needs a name.',
  },
  {
    reason: 'batch_closed',
    as: ['invalid'],
    meaning: 'The batch takes no further URLs.',
  },
  {
    reason: 'too_many_batches',
    as: ['invalid'],
    meaning: 'The crawler has 10,000 batches, those that ended within 30 days included.',
  },
  {
    reason: 'batch_not_found',
    as: ['not_found'],
    meaning: 'The crawler has no batch of this name.',
  },
  {
    reason: 'sitemap_unreadable',
    as: ['failed_precondition'],
    meaning: 'The sitemap was not answered, or cannot be parsed.',
  },
  { reason: 'missing_rid', as: ['invalid'], meaning: 'The call needs a `rid`.' },
  {
    reason: 'missing_selection',
    as: ['invalid'],
    meaning: 'A call that pushes failed crawls again does not say which.',
  },
  { reason: 'missing_url', as: ['invalid'], meaning: 'The call needs a `url`.' },
  {
    reason: 'invalid_limits',
    as: ['invalid'],
    meaning: 'A quota of an account is not a whole number of 0 or more.',
  },
  { reason: 'invalid_domain', as: [422], meaning: '`domain` is not a host name.' },
  {
    reason: 'nothing_to_change',
    as: ['invalid'],
    meaning: 'The update names no field.',
  },
  // What is not there, and what is there already.
  { reason: 'crawler_not_found', as: ['not_found'], meaning: 'There is no crawler of this name.' },
  {
    reason: 'rid_not_found',
    as: ['not_found'],
    meaning:
      'No result or job has this `rid` (or `url`): not yet, not any more, or not of this account.',
  },
  {
    reason: 'screenshot_not_found',
    as: ['not_found'],
    meaning: 'No kept picture has this id.',
  },
  { reason: 'account_not_found', as: ['not_found'], meaning: 'There is no account of this name.' },
  {
    reason: 'unknown_service',
    as: ['not_found'],
    rpcOnly: true,
    meaning: 'The health service knows no service of this name.',
  },
  {
    reason: 'crawler_exists',
    as: ['conflict'],
    meaning: 'A crawler of this name exists with another value of `field`.',
  },
  {
    reason: 'crawler_changed',
    as: ['failed_precondition'],
    meaning: 'Another client has changed the crawler since `etag` was read.',
  },
  {
    reason: 'pool_not_found',
    as: ['not_found'],
    meaning: 'The account has no pool of proxies of this name.',
  },
  {
    reason: 'pool_exists',
    as: ['conflict'],
    meaning: 'The account has a pool of proxies of this name.',
  },
  {
    reason: 'pools_changed',
    as: ['failed_precondition'],
    meaning:
      'Other calls changed the pools of the account all the time, or it was removed. Try again.',
  },
  {
    reason: 'pools_sealed',
    as: ['failed_precondition'],
    meaning:
      'The pools of the account were sealed with another PROXY_SEAL_KEY. The operator sets the one before, or the account makes its pools anew: that drops those.',
  },
  {
    reason: 'invalid_pool',
    as: ['invalid'],
    meaning:
      'A pool has a proxy, gateway, number of sessions or country that it cannot have; `field` names it.',
  },
  {
    reason: 'too_many_proxies',
    as: ['invalid'],
    meaning: 'The account has as many pools, proxies or bytes of their URLs as it may.',
  },
  { reason: 'account_exists', as: ['conflict'], meaning: 'An account of this name exists.' },
  { reason: 'token_taken', as: ['conflict'], meaning: 'The token belongs to another account.' },
  {
    reason: 'delivery_mode_fixed',
    as: ['failed_precondition'],
    meaning: 'Webhook or storage is chosen when a crawler is created.',
  },
  {
    reason: 'token_type_fixed',
    as: ['failed_precondition'],
    meaning: 'The token type is chosen when a crawler is created.',
  },
  {
    reason: 'no_webhook',
    as: ['failed_precondition'],
    meaning: 'A crawler in storage mode has no callback URL, no signing secret and no deliveries.',
  },
  {
    reason: 'too_many_paused_hosts',
    as: ['failed_precondition'],
    meaning: '1,000 hosts of the crawler are paused one by one.',
  },
  {
    reason: 'host_paused_by_rule',
    as: ['failed_precondition'],
    meaning: "An exception in the crawler's `politeness` pauses the host.",
  },
  {
    reason: 'account_has_crawlers',
    as: ['failed_precondition'],
    meaning: 'An account can be removed after its crawlers.',
  },
  // What is full or busy.
  {
    reason: 'rate_limited',
    as: ['exhausted'],
    meaning: 'The push rate of the token (`PUSH_RATE_PER_SECOND`) is reached.',
  },
  {
    reason: 'request_id_used',
    as: ['exhausted'],
    meaning:
      'An earlier call with this `request_id` did not queue the item, for whatever reason. Push it with another `request_id`.',
  },
  {
    reason: 'crawler_queue_full',
    as: ['exhausted'],
    meaning: 'The crawler has `CRAWLER_QUEUE_LIMIT` waiting URLs.',
  },
  {
    reason: 'account_queue_full',
    as: ['exhausted'],
    meaning:
      "The account's crawlers have more than `ACCOUNT_QUEUE_LIMIT` waiting URLs together; pushes are paused until they have no more than that.",
  },
  {
    reason: 'concurrency_limit_reached',
    as: ['exhausted'],
    meaning: 'The token has `INLINE_CONCURRENCY` inline crawls in progress.',
  },
  {
    reason: 'too_many_waiting',
    as: ['exhausted'],
    meaning: 'Too many calls of the account wait for their turn.',
  },
  {
    reason: 'too_many_watchers',
    as: ['exhausted'],
    rpcOnly: true,
    meaning: 'Too many clients watch the health of the service.',
  },
  {
    reason: 'too_many_crawlers_to_watch',
    as: ['failed_precondition'],
    meaning:
      'The account has more than 10,000 crawlers, and this one is not among the first by name.',
  },
  {
    reason: 'too_many_streams',
    as: ['exhausted'],
    meaning:
      'The account, or all accounts together, have as many streams of this kind as there may be.',
  },
  { reason: 'busy', as: ['unavailable'], meaning: 'There was no room for the call in time.' },
  {
    reason: 'screenshot_failed',
    as: ['unavailable'],
    meaning: 'The page could not be crawled, so there is no picture of it.',
  },
  {
    reason: 'database_unavailable',
    as: ['unavailable'],
    meaning: 'The database cannot be reached or does not answer in time.',
  },
  { reason: 'database_error', as: ['internal'], meaning: 'The database refused an operation.' },
  {
    reason: 'internal',
    as: ['internal'],
    meaning: 'A fault of the service; its log has the details.',
  },
  // The message.
  {
    reason: 'malformed_message',
    as: ['invalid', 400],
    rpcOnly: true,
    meaning:
      'The message cannot be read: it is cut short, not JSON or UTF-8, has a member twice, or is no message of this method.',
  },
  {
    reason: 'too_many_fields',
    as: ['invalid', 400],
    rpcOnly: true,
    meaning: 'The message has more fields than the method takes.',
  },
  {
    reason: 'message_too_large',
    as: ['exhausted'],
    rpcOnly: true,
    meaning:
      'An RPC message is longer than the method takes; without a token in the header, than 64 KiB.',
  },
  {
    reason: 'body_too_large',
    as: [413],
    meaning: 'A body is longer than the path takes; `limit` says how long.',
  },
  { reason: 'body_too_slow', as: [408], meaning: 'The body did not come in time.' },
  { reason: 'incomplete_body', as: [400], meaning: 'The body was cut short.' },
  {
    reason: 'invalid_gzip',
    as: [400],
    meaning: 'The body is not gzip, as its Content-Encoding says.',
  },
  {
    reason: 'unknown_member',
    as: ['invalid', 422],
    meaning:
      'An object of the body, of the query or of the JSON of Connect has a member that is not known, such as a wrong condition of a filter. The body, items and their parameters ignore unknown members. Misspelt ones of the body and of items are refused, and those that belong into an object of the body, or from parameters into their item.',
  },
  { reason: 'invalid_json', as: [400], meaning: 'The body is not a JSON object.' },
  {
    reason: 'unsupported_encoding',
    as: [415],
    meaning: 'Content-Encoding is neither gzip nor identity.',
  },
  // HTTP.
  { reason: 'not_found', as: [404], meaning: 'There is nothing at this path.' },
  {
    reason: 'unimplemented',
    as: [404],
    meaning: 'The path names an RPC method that does not exist.',
  },
  {
    reason: 'method_not_allowed',
    as: [405],
    meaning: 'The path has no such method; `Allow` lists what it has.',
  },
  {
    reason: 'disk_almost_full',
    as: ['unavailable'],
    meaning:
      'Less than `MIN_FREE_BYTES` is left on the disk of the service. What is queued stays queued, and everything continues when there is room again.',
  },
  {
    reason: 'backup_running',
    as: ['conflict'],
    meaning: 'A backup is being made; there is one at a time.',
  },
  { reason: 'backup_not_found', as: ['not_found'], meaning: 'There is no backup of that name.' },
  {
    reason: 'backup_no_room',
    as: ['unavailable'],
    meaning: 'The disk has no room for a backup.',
  },
  {
    reason: 'backup_not_embedded',
    as: ['failed_precondition'],
    meaning: 'The service works on MongoDB, which is backed up by its own tools.',
  },
  {
    reason: 'invalid_level',
    as: ['invalid'],
    meaning: '`PUT /log-level/LEVEL` names a level that there is not.',
  },
  { reason: 'invalid_http', as: [400], meaning: 'The request is not valid HTTP/1.1.' },
  {
    reason: 'request_timeout',
    as: [408],
    meaning: 'The request line and headers did not come in time.',
  },
  {
    reason: 'request_line_too_large',
    as: [413],
    meaning: 'The request line and headers are longer than 64 KiB.',
  },
  {
    reason: 'unsupported_http_version',
    as: [505],
    meaning: 'The request line names neither HTTP/1.1 nor HTTP/1.0.',
  },
  {
    reason: 'expectation_failed',
    as: [417],
    meaning: '`Expect` is something else than `100-continue`.',
  },
];

/** Reasons that contain a name, as the source spells them. */
export const errorFamilies: readonly ErrorReason[] = [
  {
    reason: 'invalid_<field>',
    as: ['invalid', 422],
    meaning:
      'The value of that field or parameter cannot be accepted; `field` names it with its path, the text says what is allowed.',
  },
  {
    reason: 'missing_<field>',
    as: ['invalid'],
    meaning: 'That field or parameter is missing.',
  },
  {
    reason: '<quota>_quota_exceeded',
    as: ['exhausted', 'invalid'],
    meaning:
      'A quota of the account is reached; the reply has `quota`, `limit` and `used`. 429 where waiting helps, 422 where something has to be removed first.',
  },
];

/**
 * Reasons with which the service, or one of its commands, refuses to start. No client sees them.
 */
export const startReasons: readonly string[] = [
  'already_copied',
  'backup_damaged',
  'copy_unfinished',
  'data_dir_in_use',
  'data_dir_not_empty',
  'database_alone',
  'database_in_use',
  'database_too_new',
  'invalid_uri',
  'log_lost',
  'no_database',
  'other_program',
  'service_unavailable',
  'source_changed',
  'unusable_path',
  'target_not_empty',
];
