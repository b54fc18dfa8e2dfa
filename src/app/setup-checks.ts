import { statfs } from 'node:fs/promises';
import type { Config } from '../config/config.ts';
import { exposureWarning } from '../config/exposure.ts';
import { lowOpenFilesLimit } from '../config/open-files.ts';
import { wallNow } from '../domain/clock.ts';
import { errorText } from '../domain/error-text.ts';
import { oneAtATime } from '../domain/one-at-a-time.ts';
import type { StoreTraits } from '../domain/store-traits.ts';
import type { CheckedBrowser } from '../engine/browser/check-browser.ts';
import { missingLibraryAdvice } from '../engine/browser/chromium-libraries.ts';
import { NO_CHROMIUM_ADVICE } from '../engine/browser/chromium-package.ts';
import { checkMail } from '../mail/check-mail.ts';
import type { AccountPools } from '../service/accounts/account-pools.ts';
import type { SetupCheck, SetupFinding } from '../service/operator/setup.ts';
import type { Store } from '../store/store.ts';
import type { AppContext } from './app-context.ts';
import { certificateFinding } from './certificate-check.ts';

/** Less than this is little for results that are kept for two weeks. */
const LITTLE_DISK_BYTES = 1024 ** 3;

/** Probes that are later than this many intervals are named: quotas may spread them over that. */
const LATE_INTERVALS = 5;

const ok = (finding: string): SetupFinding => ({ state: 'ok', finding, advice: '' });
const missing = (finding: string, advice: string): SetupFinding => {
  return { state: 'missing', finding, advice };
};

/** What an operator sets up, by the configuration of this process. */
export function setupChecks({
  config,
  logger,
  traits,
  clock,
  crawlers,
  surveyPools,
}: Pick<AppContext, 'config' | 'logger' | 'clock'> & {
  readonly traits: Pick<StoreTraits, 'shared' | 'localDisk'>;
  readonly crawlers: Pick<Store['crawlers'], 'lateProbes'>;
  readonly surveyPools: AccountPools['survey'];
}): SetupCheck[] {
  const { localDisk } = traits;
  return [
    databaseCheck(traits),
    ...(localDisk === undefined ? [] : [diskCheck(localDisk, config)]),
    mailCheck(config),
    ...(config.role === 'api' ? [] : browserChecks(config, logger)),
    tlsCheck(config, clock),
    publicUrlCheck(config),
    openFilesCheck(),
    monitoringCheck(config, (ms) => crawlers.lateProbes(new Date(clock.now().getTime() - ms))),
    proxiesCheck(config, surveyPools),
  ];
}

function databaseCheck({ shared }: Pick<StoreTraits, 'shared'>): SetupCheck {
  return {
    name: 'database',
    settings: ['DATA_DIR', 'MONGODB_URI'],
    look: () =>
      shared
        ? ok('MongoDB: any number of processes.')
        : ok('The embedded database: one process. Set MONGODB_URI to share the work.'),
  };
}

function diskCheck(folder: string, { minFreeBytes }: Config): SetupCheck {
  return {
    name: 'disk',
    settings: ['DATA_DIR', 'MIN_FREE_BYTES'],
    async look() {
      const { bavail, bsize } = await statfs(folder);
      const free = bavail * bsize;
      const amount = `${(free / 1024 ** 3).toFixed(1)} GiB are free`;
      const isLow = free < minFreeBytes;
      if (free >= LITTLE_DISK_BYTES && !isLow) return ok(`${amount}.`);
      const finding = isLow
        ? `${amount}, less than MIN_FREE_BYTES: pushes are refused and crawls wait.`
        : `${amount}.`;
      const advice = 'Make room, or move DATA_DIR: pushes and results are refused on a full disk.';
      return { state: 'failed', finding, advice };
    },
  };
}

function mailCheck({ smtpUrl, mailFrom }: Config): SetupCheck {
  return {
    name: 'mail',
    settings: ['SMTP_URL', 'MAIL_FROM'],
    look: () =>
      smtpUrl === ''
        ? missing(
            'There is no mail server.',
            'Owners are not told of pauses and full queues, which are only logged: set SMTP_URL.',
          )
        : {
            state: 'unchecked',
            finding: `Mail is sent from ${mailFrom}.`,
            advice: 'Check SMTP_URL: host, port, user and password.',
          },
    async try() {
      await checkMail(smtpUrl);
      return `The mail server accepts mail from ${mailFrom}.`;
    },
  };
}

function browserChecks(config: Config, logger: AppContext['logger']): SetupCheck[] {
  const { chromiumPath, chromiumSandbox: sandbox, chromiumWebgl: webgl } = config;
  async function isThere(): Promise<boolean> {
    const { findChromium } = await import('../engine/browser/chromium-binary.ts');
    return (await findChromium(chromiumPath).catch(() => undefined)) !== undefined;
  }

  /** Both checks are tried at the same time, and share one browser. */
  const startBrowser = oneAtATime(async () => {
    const { checkBrowser } = await import('../engine/browser/check-browser.ts');
    return checkBrowser({ chromiumPath, sandbox, webgl, logger });
  });

  async function tryWith(
    find: (found: CheckedBrowser) => string | SetupFinding,
  ): Promise<string | SetupFinding> {
    try {
      return find(await startBrowser());
    } catch (error) {
      const finding = errorText(error);
      const advice = missingLibraryAdvice(finding);
      if (advice === undefined) throw error;
      return { state: 'failed', finding, advice };
    }
  }

  const browser: SetupCheck = {
    name: 'browser',
    settings: ['CHROMIUM_PATH', 'CHROMIUM_SANDBOX', 'CHROMIUM_WEBGL', 'BROWSER_PAGES'],
    async look() {
      if (!(await isThere())) {
        return missing(
          'There is no Chromium that can be run.',
          `Crawls of the JavaScript token wait until there is one. ${NO_CHROMIUM_ADVICE}`,
        );
      }
      const advice =
        'If a check of the set-up cannot start it, start it by hand to see what it lacks. In containers see CHROMIUM_SANDBOX.';
      return { state: 'unchecked', finding: 'There is a Chromium.', advice };
    },
    try: () =>
      tryWith(({ product, hasWebgl }) => {
        if (hasWebgl) return `${product} starts, with WebGL.`;
        if (!webgl) return `${product} starts.`;
        return missing(
          `${product} starts, without WebGL.`,
          'Pages show what they show without it: use the Chromium of the packages, or one that has SwiftShader, or set CHROMIUM_WEBGL=off.',
        );
      }),
  };
  const fonts: SetupCheck = {
    name: 'fonts',
    settings: ['CHROMIUM_PATH'],
    async look() {
      if (!(await isThere())) {
        return missing('Fonts are looked for with Chromium.', 'They need a Chromium.');
      }
      const finding = 'Fonts are looked for when the set-up is checked.';
      return { state: 'unchecked', finding, advice: '' };
    },
    try: () =>
      tryWith(({ missingFonts }) => {
        if (missingFonts.length === 0) return 'Chromium has fonts for all scripts that are tried.';
        return missing(
          `Chromium has no font for ${missingFonts.join(', ')}.`,
          'Screenshots and PDFs show boxes instead: install fonts, on Debian fonts-noto-cjk, fonts-noto-core and fonts-noto-color-emoji.',
        );
      }),
  };
  return [browser, fonts];
}

function tlsCheck(config: Config, clock: AppContext['clock']): SetupCheck {
  return {
    name: 'tls',
    settings: ['TLS_CERT', 'TLS_KEY', 'HOST'],
    look() {
      const warning = exposureWarning(config);
      if (warning === undefined) {
        if (config.tlsCertFile !== '') return certificateFinding(config, wallNow(clock));
        return ok('Only this machine reaches the service.');
      }
      return {
        state: 'failed',
        finding: `The service listens on ${config.host} without TLS.`,
        advice:
          'Unless a proxy in front of it ends TLS: set TLS_CERT and TLS_KEY, or HOST=127.0.0.1.',
      };
    },
  };
}

function publicUrlCheck({ publicUrl }: Config): SetupCheck {
  return {
    name: 'public_url',
    settings: ['PUBLIC_URL'],
    look: () =>
      publicUrl === ''
        ? missing(
            'Addresses in replies name the address that the service listens on.',
            'Set PUBLIC_URL to where clients reach it, or links to screenshots and results lead nowhere.',
          )
        : ok(`Addresses in replies begin with ${publicUrl}.`),
  };
}

function openFilesCheck(): SetupCheck {
  return {
    name: 'open_files',
    settings: [],
    look() {
      const low = lowOpenFilesLimit();
      if (low !== undefined) return missing(low.finding, low.advice);
      return ok('The process may have as many files and sockets open as it needs.');
    },
  };
}

function monitoringCheck(
  { probeIntervalSeconds }: Config,
  lateBy: (ms: number) => Promise<number>,
): SetupCheck {
  return {
    name: 'monitoring',
    settings: ['PROBE_INTERVAL_SECONDS', 'ACCOUNT_PROBES_PER_MINUTE'],
    async look() {
      if (probeIntervalSeconds === 0) {
        return missing(
          'Callback URLs are not probed.',
          'Crawlers continue while their callback URL is down: set PROBE_INTERVAL_SECONDS.',
        );
      }
      const late = await lateBy(LATE_INTERVALS * probeIntervalSeconds * 1_000);
      if (late === 0) return ok(`Callback URLs are probed every ${probeIntervalSeconds} s.`);
      return {
        state: 'failed',
        finding: `The callback URLs of ${late} crawler${late === 1 ? '' : 's'} were not probed for ${LATE_INTERVALS} intervals.`,
        advice:
          'An account has more callback URLs than its quota allows: raise ACCOUNT_PROBES_PER_MINUTE or PROBE_INTERVAL_SECONDS.',
      };
    },
  };
}

/** Accounts that are named. */
const MAX_NAMED = 5;

function proxiesCheck({ proxies }: Config, survey: AccountPools['survey']): SetupCheck {
  const names = proxies.map((pool) => `${pool.name} (${pool.proxies.length})`);
  const operators = names.length === 0 ? '' : `There are proxies for ${names.join(', ')}.`;
  return {
    name: 'proxies',
    settings: ['PROXIES', 'PROXY_SEAL_KEY'],
    async look() {
      const { opened, sealed } = await survey();
      if (sealed.length > 0) {
        const named = sealed.slice(0, MAX_NAMED).join(', ');
        const which = `${accounts(sealed.length)} (${named}${sealed.length > MAX_NAMED ? ', ...' : ''})`;
        const finding = `No key of PROXY_SEAL_KEY opens the pools of ${which}.`;
        return {
          state: 'failed',
          finding: operators === '' ? finding : `${operators} ${finding}`,
          advice:
            'Their URLs wait (pools_sealed): add the former key to PROXY_SEAL_KEY behind a comma, or let the accounts make their pools anew.',
        };
      }
      if (operators !== '') return ok(operators);
      if (opened > 0) {
        return ok(`There are proxies of ${accounts(opened)}, and none of the operator.`);
      }
      return missing(
        'There are no proxies.',
        'Crawls with `proxy`, `country` or `tor_network` need PROXIES, or pools that accounts make.',
      );
    },
  };
}

const accounts = (count: number): string => `${count} account${count === 1 ? '' : 's'}`;
