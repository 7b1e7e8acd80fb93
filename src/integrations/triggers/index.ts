import type { Static } from '@sinclair/typebox'
import { chat } from './chat'
import { event } from './event'
import { schedule } from './schedule'
import { tool } from './tool'
import { webhook } from './webhook'

/** The kinds of triggers, by name. `webhooks.ts`, `event-subscriber.ts` and `schedules.ts` run the targets. */
export const triggers = { webhook, event, schedule, chat, tool }
export type TriggerName = keyof typeof triggers
export const triggerNames = Object.keys(triggers) as TriggerName[]

export type Trigger<Name extends TriggerName = TriggerName> = {
  [K in Name]: { kind: K } & Static<(typeof triggers)[K]['shape']>
}[Name]
