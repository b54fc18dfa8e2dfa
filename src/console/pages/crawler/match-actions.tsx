import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type {
  CrawlOutcome,
  JobState,
  MatchAction,
} from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type {
  DeliveryState,
  TokenType,
} from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { type Fault, faultOf } from '../../api/fault.ts';
import { useAction } from '../../api/use-action.ts';
import { count } from '../../format/numbers.ts';
import { serviceNow } from '../../format/service-clock.ts';
import { setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { download } from '../../ui/download.ts';
import { Meter } from '../../ui/meter.tsx';
import { FaultNotice, Notice } from '../../ui/notice.tsx';
import { type FileRow, toCsv, toNdjson } from '../../ui/row-file.ts';
import { toast } from '../../ui/toasts.tsx';
import type { ListPage } from '../../ui/use-pages.ts';
import { fileRow } from './file-row.ts';
import { addressFilter, localInput, type MatchFilter } from './match-filter.tsx';
import { type MatchRun, matchRunOf, startMatchRun } from './match-run.ts';

/** Something that can be done with all rows that a filter selects. */
export interface OfferedAction {
  readonly action: MatchAction;
  /** Such as `Remove`. */
  readonly verb: string;
  /** What becomes of the rows. */
  readonly effect: string;
  /** Whether it is offered for the last hour, day and week as well. */
  readonly hasRanges?: boolean;
  readonly jobState?: JobState;
  readonly deliveryState?: DeliveryState;
  readonly outcome?: CrawlOutcome;
}

/** Most rows of a file that is saved here; the command line writes longer ones. */
const MAX_SAVED = 100_000;
const READ_AT_ONCE = 200;

const RANGES = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const;

/** What can be done with all that the filter of the address selects. */
export function MatchActions<Desc extends DescMessage>(props: {
  readonly crawler: string;
  readonly type: TokenType;
  /** What is acted on, such as `jobs`. */
  readonly what: string;
  readonly actions: readonly OfferedAction[];
  readonly fields: readonly string[];
  /** What the rows of a file are made of. */
  readonly desc: Desc;
  /** Reads a page of what is selected. */
  readonly read: (pageToken: string, pageSize: number) => Promise<ListPage<MessageShape<Desc>>>;
  readonly onEnd: () => void;
}) {
  const { crawler, what } = props;
  const asked = useSignal<OfferedAction | undefined>(undefined);
  const filter = addressFilter();
  const isWrong = filter.fault !== undefined;
  const save = useAction(async (format: 'csv' | 'ndjson') => {
    const all: FileRow[] = [];
    let token = '';
    do {
      const { rows, nextPageToken } = await props.read(token, READ_AT_ONCE);
      all.push(...rows.map((each) => fileRow(props.desc, each)));
      token = nextPageToken;
    } while (token !== '' && all.length < MAX_SAVED);
    const name = `${crawler === '' ? 'storage' : crawler}-${what}.${format}`;
    download(name, format === 'csv' ? toCsv(all, props.fields) : toNdjson(all));
    const cut = token === '' ? '' : ' There are more: narrow the filter for the others.';
    toast(`Saved ${count(all.length)} ${what}.${cut}`);
  });
  return (
    <>
      <div class="row">
        {props.actions.map((offered) => (
          <Button
            key={offered.verb}
            small
            opensDialog
            disabled={isWrong}
            onClick={() => {
              asked.value = offered;
            }}
          >
            {offered.verb} all…
          </Button>
        ))}
        {props.actions
          .filter(({ hasRanges }) => hasRanges === true)
          .map((offered) => (
            <select
              key={offered.verb}
              class="input short"
              aria-label={`${offered.verb} those of the last`}
              value=""
              disabled={isWrong}
              onChange={({ currentTarget }) => {
                const range = currentTarget.value as keyof typeof RANGES;
                currentTarget.value = '';
                setQuery('from', localInput(serviceNow() - RANGES[range]));
                asked.value = offered;
              }}
            >
              <option value="">{offered.verb} the last…</option>
              {Object.keys(RANGES).map((range) => (
                <option key={range} value={range}>
                  {range}
                </option>
              ))}
            </select>
          ))}
        <Button small busy={save.busy} disabled={isWrong} onClick={() => void save.run('csv')}>
          CSV
        </Button>
        <Button small busy={save.busy} disabled={isWrong} onClick={() => void save.run('ndjson')}>
          NDJSON
        </Button>
      </div>
      <FaultNotice fault={save.fault} />
      {asked.value !== undefined && filter.fault === undefined && (
        <MatchDialog
          {...props}
          filter={filter}
          offered={asked.value}
          onClose={() => {
            asked.value = undefined;
          }}
        />
      )}
    </>
  );
}

/** Tells how many there are, asks, and shows how far it is. */
export function MatchDialog(props: {
  readonly crawler: string;
  readonly type: TokenType;
  readonly what: string;
  readonly filter: MatchFilter;
  readonly offered: OfferedAction;
  readonly onEnd: () => void;
  readonly onClose: () => void;
}) {
  const { crawler, type, what, offered, onClose } = props;
  const { verb, effect, hasRanges: _, ...which } = offered;
  const { message, key } = props.filter;
  const request = { name: crawler, filter: message, ...which };
  const { activity } = clientsFor(type);
  const found = useSignal(0);
  const isCounted = useSignal(false);
  const fault = useSignal<Fault | undefined>(undefined);
  const isStarted = useSignal(false);
  useEffect(() => {
    const leaving = new AbortController();
    const estimate = async (): Promise<void> => {
      const { signal } = leaving;
      for await (const part of activity.actOnMatches({ ...request, estimate: true }, { signal })) {
        found.value = part.matched;
      }
      isCounted.value = true;
    };
    estimate().catch((error: unknown) => {
      if (!leaving.signal.aborted) fault.value = faultOf(error);
    });
    return () => leaving.abort();
  }, []);
  const last = matchRunOf(crawler);
  const isBusy = !isStarted.value && last !== undefined && last.state !== 'ended';
  const run = isStarted.value || isBusy ? last : undefined;
  const total = `${count(found.value)}${isCounted.value ? '' : ' or more'}`;
  return (
    <Dialog title={`${verb} ${what}`} onClose={onClose}>
      <p>
        {isCounted.value ? '' : 'Counting: '}
        <strong>{total}</strong>{' '}
        {key === '' ? 'are there; no filter is set' : `selected by the filter ${key}`}.
      </p>
      <p class="muted">{effect}</p>
      <FaultNotice fault={fault.value} />
      {isBusy && (
        <Notice kind="warn" title={`Another action on this crawler has not ended: ${last.verb}`} />
      )}
      {run !== undefined && <RunProgress run={run} />}
      <div class="row end">
        <Button onClick={onClose}>Close</Button>
        {!isStarted.value && (
          <Button
            kind="primary"
            disabled={found.value === 0 || isBusy}
            onClick={() => {
              isStarted.value = true;
              startMatchRun(activity, request, {
                verb,
                total: isCounted.value ? found.value : undefined,
                onEnd: props.onEnd,
              });
            }}
          >
            {verb} {total}
          </Button>
        )}
      </div>
    </Dialog>
  );
}

/** How far an action is, and how it is stopped and forgotten. */
function RunProgress({ run }: { readonly run: MatchRun }) {
  const { done, refused, total, state } = run;
  const left = refused === 0 ? '' : `, ${count(refused)} refused`;
  return (
    <div class="stack tight" role="status">
      {total !== undefined && (
        <Meter label={run.verb} used={done + refused} limit={total} mayBeFull />
      )}
      <div class="row spread">
        <span>
          {state === 'running' ? 'Working' : state === 'ended' ? 'Done' : 'Stopped'}: {count(done)}
          {total === undefined ? '' : ` of ${count(total)}`}
          {left}
        </span>
        {state === 'running' && (
          <Button small onClick={run.stop}>
            Stop
          </Button>
        )}
        {state === 'stopped' && (
          <span class="row tight">
            <Button small onClick={run.proceed}>
              Continue
            </Button>
            <Button small onClick={run.dismiss}>
              Dismiss
            </Button>
          </span>
        )}
      </div>
      <FaultNotice fault={run.fault} />
    </div>
  );
}
