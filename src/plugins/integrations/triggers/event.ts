import { t } from 'elysia'
import type { Event } from '../../../jobs/outbox'
import type { Trigger } from '../triggers'
import { trigger } from './trigger'

const some = t.Optional(t.String({ minLength: 1, maxLength: 200, description: 'any, when it is absent or `*`' }))

/** Something that has happened, as `/api/events` tells it. */
export const event = trigger({ shape: t.Object({ source: some, eventKind: some, eventName: some }) })

type Named = Pick<Event, 'source' | 'kind' | 'eventName'>

/** Whether an event is one of those that are waited for. */
export const wants = ({ source, eventKind, eventName }: Trigger<'event'>, happened: Named) =>
  is(source, happened.source) && is(eventKind, happened.kind) && is(eventName, happened.eventName)

const is = (wanted: string | undefined, name: string) => wanted === undefined || wanted === '*' || wanted === name
