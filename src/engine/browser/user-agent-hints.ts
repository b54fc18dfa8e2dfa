import type { Protocol } from 'devtools-protocol';

/** What belongs to a user agent: the platform of scripts, and the client hints that Chromium sends. */
export interface UserAgentHints {
  /** `navigator.platform`. */
  readonly platform: string;
  /** Undefined for browsers that send no hints. */
  readonly metadata: Protocol.Emulation.UserAgentMetadata | undefined;
}

interface System {
  readonly pattern: RegExp;
  readonly platform: string;
  /** `Sec-CH-UA-Platform`, and its version where the user agent does not have it. */
  readonly hint: string;
  readonly version: string;
}

/** In the order in which they are searched for. */
const SYSTEMS: readonly System[] = [
  { pattern: /Android ?([\d.]*)/, platform: 'Linux armv81', hint: 'Android', version: '15.0.0' },
  { pattern: /iPad/, platform: 'iPad', hint: 'iOS', version: '' },
  { pattern: /iPhone/, platform: 'iPhone', hint: 'iOS', version: '' },
  { pattern: /Windows/, platform: 'Win32', hint: 'Windows', version: '19.0.0' },
  { pattern: /Mac OS X/, platform: 'MacIntel', hint: 'macOS', version: '15.0.0' },
  { pattern: /CrOS/, platform: 'Linux x86_64', hint: 'Chrome OS', version: '16093.0.0' },
];
const LINUX: System = {
  pattern: /^/,
  platform: 'Linux x86_64',
  hint: 'Linux',
  version: '6.12.0',
};

/**
 * What agrees with a user agent, in the Chromium of the version `running` (as `153.0.7899.0`): its
 * full version is used where the user agent names the same major one.
 */
export function userAgentHints(userAgent: string, running: string): UserAgentHints {
  const system = SYSTEMS.find(({ pattern }) => pattern.test(userAgent)) ?? LINUX;
  const { platform, hint } = system;
  const chrome = /\bChrome\/(\d+)([\d.]*)/.exec(userAgent);
  if (chrome === null || /\b(Edg|OPR|Firefox)\b/.test(userAgent) || hint === 'iOS') {
    return { platform, metadata: undefined };
  }
  const [, major = '', rest = ''] = chrome;
  const fullVersion = running.startsWith(`${major}.`) ? running : `${major}${rest}`;
  const isMobile = /\bMobile\b/.test(userAgent);
  const isAndroid = hint === 'Android';
  return {
    platform,
    metadata: {
      brands: brands(Number(major), major),
      fullVersionList: brands(Number(major), fullVersion),
      platform: hint,
      platformVersion: androidVersion(userAgent) ?? system.version,
      architecture: isAndroid ? '' : 'x86',
      bitness: isAndroid ? '' : '64',
      model: isAndroid ? (/Android [\d.]+; ([^;)]+)/.exec(userAgent)?.[1]?.trim() ?? '') : '',
      mobile: isMobile,
      formFactors: [isMobile ? 'Mobile' : isAndroid ? 'Tablet' : 'Desktop'],
    },
  };
}

function androidVersion(userAgent: string): string | undefined {
  const [, version] = /Android (\d+)/.exec(userAgent) ?? [];
  return version === undefined ? undefined : `${version}.0.0`;
}

const GREASE_SIGNS = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_'];
const GREASE_VERSIONS = ['8', '99', '24'];

/**
 * The brands of Chromium: itself and a made-up one, whose name and place follow from the major
 * version (https://wicg.github.io/ua-client-hints/#create-arbitrary-brands-section).
 */
function brands(major: number, version: string): Protocol.Emulation.UserAgentBrandVersion[] {
  const sign = (at: number): string => GREASE_SIGNS[at % GREASE_SIGNS.length] ?? ' ';
  const grease = {
    brand: `Not${sign(major)}A${sign(major + 1)}Brand`,
    version: fullGrease(GREASE_VERSIONS[major % GREASE_VERSIONS.length] ?? '8', version),
  };
  const own = { brand: 'Chromium', version };
  return major % 2 === 0 ? [grease, own] : [own, grease];
}

function fullGrease(version: string, like: string): string {
  return like.includes('.') ? `${version}.0.0.0` : version;
}
