import type { Actor } from '../accounts/actors'
import { tryParseJson } from '../core/json'
import { Problem } from '../core/problem'
import { getTenant } from '../tenancy/tenants'
import type { DefinitionFiles } from './definition-files'
import { type ChangeReport, type DiffInput, diff, type PushInput, push } from './push'
import type { DefinitionPushResult } from './shapes'
import { readDefinitions, type Versions } from './tenant-definitions'

export type DiffReport = { changes: ChangeReport[]; missingSecrets: string[]; keptSecrets: string[] }
export type PushReport = Omit<DefinitionPushResult, 'changes'> & { changes: ChangeReport[] }

/** A tenant whose definitions are read and written, here or at a server. */
export type DefinitionTarget = {
  /** Tells targets apart in `.atoll.json`. */
  id: string
  read(): Promise<{ files: DefinitionFiles; versions: Versions }>
  diff(input: DiffInput): Promise<DiffReport>
  push(input: PushInput): Promise<PushReport>
}

/** The actor of commands that work on the data here. */
export const OPERATOR: Actor = {
  ...{ user: 'operator', roles: ['admin'], privileged: true, workspace: null, via: 'bearer', scopes: [] },
}

/** Returns a tenant of the data here. @throws 404 TENANT_NOT_FOUND */
export async function openLocalTarget(tenant: string): Promise<DefinitionTarget> {
  const ctx = { ...(await getTenant(tenant)), actor: OPERATOR }
  return {
    id: `tenant ${tenant}`,
    read: () => readDefinitions(ctx),
    diff: (input) => diff(ctx, input),
    push: (input) => push(ctx, input),
  }
}

/** Returns a tenant of a server, which is asked by its API with an API token. */
export function openRemoteTarget(url: string, token: string, tenant?: string): DefinitionTarget {
  const base = url.replace(/\/+$/, '')
  async function call<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const headers = {
      'x-api-key': token,
      ...(tenant && { tenant }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const sent = body === undefined ? undefined : JSON.stringify(body)
    const response = await fetch(`${base}/api/definitions${path}`, { method, headers, body: sent }).catch((cause) => {
      throw new Problem(502, 'SERVER_UNREACHABLE', `Cannot reach ${url}: ${cause.message}`, { cause })
    })
    const answer = tryParseJson(await response.text()) as Body & { code?: string; message?: string; details?: never }
    if (response.ok && answer !== undefined) return answer
    const unexpected = `${url} returned ${response.status}, but not from Atoll. Check the URL and the proxy in front of the server.`
    const { code = 'UNEXPECTED_ANSWER', message = unexpected, details } = answer ?? {}
    throw new Problem(response.status, code, message, details && { details })
  }
  return {
    id: `${base} ${tenant ?? ''}`.trim(),
    read: () => call('GET', ''),
    diff: (input) => call('POST', '/diff', input),
    push: (input) => call('POST', '/push', input),
  }
}
