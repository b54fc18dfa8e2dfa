import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type CreateProxyPoolRequest,
  ProxyService,
  type UpdateProxyPoolRequest,
} from '../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import { defined } from '../domain/defined.ts';
import type {
  AccountPools,
  OwnPoolDetails,
  OwnPoolInput,
} from '../service/accounts/account-pools.ts';
import type { Service } from '../service/service.ts';
import { callerOf } from './caller-of.ts';
import { type Method, toMethods } from './method.ts';
import { toProxyMessage } from './proxy-messages.ts';

/** The methods of the proxy service. */
export function proxyHandlers(deps: {
  readonly accountPools: AccountPools;
  readonly listProxies: Service['listProxies'];
}): Method[] {
  const { accountPools: pools } = deps;

  function withProxies(accountId: string, details: OwnPoolDetails) {
    const proxies = deps.listProxies(accountId, [details.pool]).map(toProxyMessage);
    return { ...toPoolMessage(details), proxies };
  }

  return toMethods(ProxyService, {
    async createProxyPool(request, call) {
      const { accountId } = callerOf(call).account;
      const made = await pools.create(accountId, request.name, toInput(request));
      return { pool: withProxies(accountId, made) };
    },
    async listProxyPools(_request, call) {
      const { accountId } = callerOf(call).account;
      return { pools: (await pools.list(accountId)).map(toPoolMessage) };
    },
    async getProxyPool(request, call) {
      const { accountId } = callerOf(call).account;
      return { pool: withProxies(accountId, await pools.get(accountId, request.name)) };
    },
    async updateProxyPool(request, call) {
      const { accountId } = callerOf(call).account;
      const changed = await pools.update(accountId, request.name, toInput(request));
      return { pool: withProxies(accountId, changed) };
    },
    async deleteProxyPool(request, call) {
      const { accountId } = callerOf(call).account;
      await pools.remove(accountId, request.name);
      return {};
    },
  });
}

function toInput(request: CreateProxyPoolRequest | UpdateProxyPoolRequest): OwnPoolInput {
  const { proxies, gateway, sessions, countries } = request;
  return defined({
    proxies: proxies.length === 0 ? undefined : proxies,
    gateway: gateway === '' ? undefined : gateway,
    sessions,
    countries: countries?.split(/[\s,]+/).filter((country) => country !== ''),
  });
}

function toPoolMessage({ own, pool }: OwnPoolDetails) {
  return {
    name: own.name,
    countries: [...own.countries],
    gateway: own.gateway !== undefined,
    proxyCount: pool.proxies.length,
    createdAt: timestampFromDate(new Date(own.createdAt)),
    updatedAt: timestampFromDate(new Date(own.updatedAt)),
  };
}
