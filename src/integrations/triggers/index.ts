import type { Static } from '@sinclair/typebox'
import { chat } from './chat'
import { event } from './event'
import { schedule } from './schedule'
import { tool } from './tool'
import { webhook } from './webhook'

/** What an integration can wait for. Who is at it, runs its target: see `webhooks.ts`, `hearing.ts`, `schedules.ts`. */
export const triggers = { webhook, event, schedule, chat, tool }
export type TriggerName = keyof typeof triggers
export const triggerNames = Object.keys(triggers) as TriggerName[]

export type Trigger<Name extends TriggerName = TriggerName> = {
  [K in Name]: { kind: K } & Static<(typeof triggers)[K]['shape']>
}[Name]
