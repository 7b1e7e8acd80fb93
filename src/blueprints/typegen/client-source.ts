// biome-ignore-all assist/source/organizeImports: this is the order in the generated file
// @ts-nocheck the modules are read as text
import entity from '../../../client/src/entity.ts' with { type: 'text' }
import index from '../../../client/src/index.ts' with { type: 'text' }
import queries from '../../../client/src/queries.ts' with { type: 'text' }
import client from '../../../client/src/client.ts' with { type: 'text' }
import accounts from '../../../client/src/accounts.ts' with { type: 'text' }
import signInMethods from '../../../client/src/sign-in-methods.ts' with { type: 'text' }
import passkeys from '../../../client/src/passkeys.ts' with { type: 'text' }
import workspaces from '../../../client/src/workspaces.ts' with { type: 'text' }
import entities from '../../../client/src/entities.ts' with { type: 'text' }
import changes from '../../../client/src/changes.ts' with { type: 'text' }
import charts from '../../../client/src/charts.ts' with { type: 'text' }
import files from '../../../client/src/files.ts' with { type: 'text' }
import ai from '../../../client/src/ai.ts' with { type: 'text' }
import payments from '../../../client/src/payments.ts' with { type: 'text' }
import automation from '../../../client/src/automation.ts' with { type: 'text' }
import transport from '../../../client/src/transport.ts' with { type: 'text' }
import session from '../../../client/src/session.ts' with { type: 'text' }
import errors from '../../../client/src/errors.ts' with { type: 'text' }
import streams from '../../../client/src/streams.ts' with { type: 'text' }
import platform from '../../../client/src/platform.ts' with { type: 'text' }
import version from '../../../client/src/version.ts' with { type: 'text' }
import anyKind from '../../../client/src/any-kind.ts' with { type: 'text' }
import hooks from '../../../client/src/hooks.ts' with { type: 'text' }
import entityHooks from '../../../client/src/entity-hooks.ts' with { type: 'text' }
import liveStreams from '../../../client/src/live-streams.ts' with { type: 'text' }
import sessionHooks from '../../../client/src/session-hooks.ts' with { type: 'text' }
import workspaceHooks from '../../../client/src/workspace-hooks.ts' with { type: 'text' }
import paymentHooks from '../../../client/src/payment-hooks.ts' with { type: 'text' }
import aiHooks from '../../../client/src/ai-hooks.ts' with { type: 'text' }
import querySettings from '../../../client/src/query-settings.ts' with { type: 'text' }

const MODULES: string[] = [
  ...[queries, client, accounts, signInMethods, passkeys, workspaces, entities, changes, charts, files, ai, payments],
  ...[automation, transport, session, errors, streams, platform, version],
]

const HOOK_MODULES: string[] = [
  ...[hooks, querySettings, entityHooks, liveStreams, sessionHooks, workspaceHooks, paymentHooks, aiHooks],
]

const publicNames = new Set<string>(index.replace(/'[^']*'/g, '').match(/\w+/g))
for (const name of ['createHooks', 'QuerySettings']) publicNames.add(name)

/** Returns a module without imports, directives of the linter, and exports that only other modules of the client use. */
const toPart = (text: string) =>
  text
    .replace(/^import [^']*'[^']+'\n+/gm, '')
    .replace(/^\s*\/\/ biome-ignore.*\n/gm, '')
    .replace(/^export ((?:async )?(?:const|function\*?|class|type|interface) (\w+))/gm, (all, declaration, name) =>
      publicNames.has(name) ? all : declaration,
    )

/** The declarations of entities and of `Blueprints`, to which each blueprint adds itself. */
export const entitySource: string = toPart(entity)

/** The kind of blueprints whose types are not generated. */
export const anyKindSource: string = toPart(anyKind)

/** The client in one text, without `entitySource`. */
export const clientSource: string = MODULES.map(toPart).join('\n')

/** Returns the hooks, which import the client from a module such as `./atoll`. */
export const toHooksSource = (module: string): string =>
  [
    listImports(HOOK_MODULES).replace("from './index'", `from ${JSON.stringify(module)}`),
    ...HOOK_MODULES.map(toPart),
  ].join('\n')

/** Returns what modules import from the client and from packages, once for all of them. */
function listImports(modules: string[]): string {
  const names = new Map<string, Set<string>>()
  for (const text of modules)
    for (const [, type, list = '', from = ''] of text.matchAll(/^import (type )?\{([^}]*)\} from '([^']+)'/gm)) {
      if (from !== './index' && from.startsWith('.')) continue
      const known = names.get(from) ?? new Set()
      names.set(from, known)
      for (const name of list.split(',').map((each) => each.trim())) if (name) known.add(type ? `type ${name}` : name)
    }
  return [...names]
    .map(
      ([from, known]) =>
        `import {\n${[...known]
          .sort()
          .map((name) => `  ${name},\n`)
          .join('')}} from '${from}'\n`,
    )
    .join('')
}
