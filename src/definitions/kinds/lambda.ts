import type { Ctx } from '../../accounts/context'
import { compileCode } from '../../lambdas/compilation'
import { readValues } from '../../lambdas/env'
import * as lambdas from '../../lambdas/lambdas'
import { NewLambda } from '../../lambdas/shapes'
import { type Definition, defineKind, ifUnreadable, mapTexts, replaceKeys, toEmptyTexts } from './definition-kind'

const DEFAULTS = { description: '', timeoutMs: 5_000, memoryMb: 64, serviceRole: null, env: {} }

/** A lambda. The values of its environment are secrets. */
export const lambda = defineKind({
  folder: 'lambdas',
  nameKey: 'name',
  sharesNames: true,
  source: { key: 'code', extension: 'ts' },
  shape: NewLambda,
  defaults: DEFAULTS,
  mapSecrets: ({ env, ...definition }, map) => ({
    ...definition,
    ...(env !== undefined && { env: mapTexts(env, map) }),
  }),
  list: lambdas.list,
  get: lambdas.get,
  async toStored({ _id, name, description, code, timeoutMs, memoryMb, serviceRole, env: names }, ctx) {
    const env = await readEnvironment(ctx, _id, names)
    return { id: _id, name, definition: { description, code, timeoutMs, memoryMb, serviceRole, env } }
  },
  async validate(ctx, { code }, { before }) {
    if (code !== before?.stored.code) await compileCode(ctx, code)
  },
  create: lambdas.create,
  change(ctx, id, { env, ...input }, { before, ifMatch }) {
    const values = replaceKeys(before.env as Definition, env as Definition) as Record<string, string | null>
    const { env: _, ...defaults } = DEFAULTS
    return lambdas.change(ctx, id, { ...defaults, ...input, env: values }, { ifMatch })
  },
  remove: (ctx, id, { ifMatch }) => lambdas.remove(ctx, id, { ifMatch }),
})

/** Returns the values by name; those that no key decrypts any more are empty. */
const readEnvironment = (ctx: Ctx, id: string, names: string[]) =>
  readValues(ctx, id, names).catch(ifUnreadable(toEmptyTexts(names)))
