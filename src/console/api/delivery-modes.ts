import { type Crawler, DeliveryMode } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';

/** What a delivery mode means for what the console shows. */
export interface DeliveryTraits {
  readonly label: string;
  /** Results are sent, and tried again, to a callback URL with a signing secret and probes. */
  readonly postsToCallback: boolean;
}

const STORAGE: DeliveryTraits = { label: 'storage', postsToCallback: false };

/** A new mode does not compile until it has its traits. */
const MODES: Readonly<Record<DeliveryMode, DeliveryTraits>> = {
  [DeliveryMode.UNSPECIFIED]: STORAGE,
  [DeliveryMode.STORAGE]: STORAGE,
  [DeliveryMode.WEBHOOK]: { label: 'webhook', postsToCallback: true },
};

/** The traits of a crawler's delivery mode; of one that this console does not know, storage's. */
export function deliveryOf({ delivery }: Pick<Crawler, 'delivery'>): DeliveryTraits {
  return MODES[delivery] ?? STORAGE;
}
