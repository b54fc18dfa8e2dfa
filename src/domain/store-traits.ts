/**
 * What a store can do and what its calls cost. The parts above the store ask for a trait and never
 * for the database, so that another database is a new set of traits. Whether processes can divide
 * one crawler is said by `Store.shares`.
 */
export interface StoreTraits {
  /** The name of the database for people and metrics. */
  readonly name: 'embedded' | 'mongodb';
  /** Whether other processes may write to the database. */
  readonly shared: boolean;
  /**
   * The cost of one turn of a run: `sync` is one transaction and one sync to a local disk,
   * `round_trips` is several commands over a network. A turn of the latter should write much.
   */
  readonly costOfATurn: 'sync' | 'round_trips';
  /** Bytes of pages that one turn should write at most; a larger page comes alone. */
  readonly writeBytes: number;
  /** The folder of the database on a disk of this machine; undefined for a database server. */
  readonly localDisk: string | undefined;
}
