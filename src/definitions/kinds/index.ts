import { agent } from './agent'
import { block } from './block'
import { blueprint } from './blueprint'
import { component } from './component'
import { configuration } from './configuration'
import { connection } from './connection'
import { coupon } from './coupon'
import type { DefinitionKind, KindName } from './definition-kind'
import { integration } from './integration'
import { lambda } from './lambda'
import { mail } from './mail'
import { plan } from './plan'
import { plugin } from './plugin'

/** The kinds of definitions, in order of dependency: each refers only to itself and to those before it. */
export const kinds: Record<KindName, DefinitionKind> = {
  blueprint,
  connection,
  lambda,
  plugin,
  integration,
  agent,
  block,
  component,
  plan,
  coupon,
  configuration,
  mail,
}
export const kindNames = Object.keys(kinds) as KindName[]
