import { chat } from './chat'
import { event } from './event'
import { schedule } from './schedule'
import { tool } from './tool'
import type { Trigger, TriggerKind, TriggerName } from './trigger-kind'
import { webhook } from './webhook'

/** All kinds of triggers, by the names that the API uses. */
export const triggers: { [Name in TriggerName]: TriggerKind<Name> } = { webhook, event, schedule, chat, tool }

/** Returns when a trigger fires, as the first half of a sentence. */
export const describeTrigger = (trigger: Trigger): string =>
  (triggers[trigger.kind] as TriggerKind).describe(trigger as never)
