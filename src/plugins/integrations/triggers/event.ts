import { type Static, t } from 'elysia'
import type { Event } from '../../../jobs/outbox'
import type { TriggerKind } from './trigger'

const some = t.Optional(t.String({ minLength: 1, maxLength: 200, description: 'any, when it is absent or `*`' }))

const shape = t.Object({ source: some, eventKind: some, eventName: some })

/** Something that has happened, as `/api/events` tells it. */
export const event: TriggerKind<typeof shape> = { shape }

type Named = Pick<Event, 'source' | 'kind' | 'eventName'>

/** Whether an event is one of those that are waited for. */
export const wants = ({ source, eventKind, eventName }: Static<typeof shape>, happened: Named) =>
  is(source, happened.source) && is(eventKind, happened.kind) && is(eventName, happened.eventName)

const is = (wanted: string | undefined, name: string) => wanted === undefined || wanted === '*' || wanted === name
