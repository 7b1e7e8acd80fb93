import { createAccount } from './accounts'
import { createAi } from './ai'
import { createAutomation } from './automation'
import { createCharts } from './charts'
import { createEntities } from './entities'
import type { Blueprints } from './entity'
import { createFiles } from './files'
import { createPasskeys } from './passkeys'
import { createPayments } from './payments'
import type { Kinds } from './queries'
import { createSignInMethods } from './sign-in-methods'
import { createTransport, type Options } from './transport'
import { createWorkspaces } from './workspaces'

/**
 * A client of a tenant. Everything it does throws an `AtollError` when the server refuses the request.
 * @example
 * const client = createClient<Blueprints>({ url: 'https://data.example.com', tenant: 'acme' })
 */
export function createClient<B extends Kinds<B> = Blueprints>(options: Options) {
  const transport = createTransport(options)
  return {
    ...createAccount(transport),
    ...createSignInMethods(transport),
    passkeys: createPasskeys(transport),
    workspaces: createWorkspaces(transport),
    /**
     * The entities of a blueprint.
     * @example
     * const tasks = client.entities('tasks')
     */
    entities: <Key extends keyof B & string>(key: Key) => createEntities<B, Key>(transport, key),
    /**
     * Charts of the entities of a blueprint.
     * @example
     * const charts = client.charts('tasks')
     */
    charts: <Key extends keyof B & string>(key: Key) => createCharts<B[Key]>(transport, key),
    files: createFiles(transport),
    ai: createAi(transport),
    payments: createPayments(transport),
    ...createAutomation(transport),
  }
}

/** What `createClient` returns. */
export type Client<B extends Kinds<B> = Blueprints> = ReturnType<typeof createClient<B>>
