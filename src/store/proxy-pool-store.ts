/** All pools of proxies of an account, sealed. */
export interface SealedPools {
  /** Grows by one with each change, from 1 on. */
  readonly version: number;
  readonly sealed: string;
}

/** The pools of proxies that accounts have made. */
export interface ProxyPoolStore {
  /** The pools of an account; undefined if they are those of version `known`, 0 for none. */
  read(accountId: string, known: number): Promise<SealedPools | undefined>;
  /**
   * Replaces the pools of version `known`, 0 for none. False if there is another version by now, or no
   * such account any more.
   */
  replace(accountId: string, known: number, sealed: string): Promise<boolean>;
  /** The identifiers of up to `limit` accounts that have made pools. */
  owners(limit: number): Promise<string[]>;
}
