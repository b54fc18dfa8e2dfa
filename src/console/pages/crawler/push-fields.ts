/** A field of a push as the form shows it. */
export interface PushField {
  /** In the API. */
  readonly name: string;
  readonly label: string;
  readonly help: string;
  readonly placeholder: string;
  /** Of a number. */
  readonly min?: number;
  readonly max?: number;
  /** Acts on deliveries only. */
  readonly onlyDelivered?: boolean;
}

/** The fields that hold for all URLs of a push, without its parameters and `unique`; a test compares them with the API's. */
export const PUSH_FIELDS: readonly PushField[] = [
  {
    name: 'batch',
    label: 'Batch',
    placeholder: 'none',
    help: 'Counts the URLs together. A new name makes the batch.',
  },
  {
    name: 'priority',
    label: 'Priority',
    min: 0,
    max: 9,
    placeholder: '5',
    help: 'A higher one goes first.',
  },
  {
    name: 'delay',
    label: 'Delay, seconds',
    min: 0,
    max: 2_592_000,
    placeholder: 'none',
    help: 'The URLs wait as scheduled until then.',
  },
  {
    name: 'queue_timeout',
    label: 'Queue timeout, minutes',
    min: 0,
    max: 10_080,
    placeholder: 'none',
    help: 'A URL that waits longer ends with cb_status 699.',
  },
  {
    name: 'metadata',
    label: 'Metadata',
    placeholder: '{"order": 42}',
    help: 'JSON that comes back with each result.',
  },
  {
    name: 'unique_for',
    label: 'Once for, seconds',
    min: 0,
    max: 2_592_000,
    placeholder: 'none',
    help: 'A URL pushed within this time is not queued again.',
  },
  {
    name: 'callback_headers',
    label: 'Callback headers',
    placeholder: 'X-Job|42|X-Kind|daily',
    help: 'Sent along with each delivery.',
    onlyDelivered: true,
  },
];
