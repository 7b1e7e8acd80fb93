import { type Static, t } from 'elysia'
import type { Event } from '../../jobs/outbox'
import type { TriggerKind } from './trigger-kind'

const optionalName = t.Optional(t.String({ minLength: 1, maxLength: 200, description: 'any if absent or `*`' }))

const shape = t.Object({ source: optionalName, eventKind: optionalName, eventName: optionalName })

/** An event, as `/api/events` returns it. */
export const event: TriggerKind<typeof shape> = { shape }

type EventKey = Pick<Event, 'source' | 'kind' | 'eventName'>

/** Returns whether an event matches a trigger. */
export const matchesEvent = ({ source, eventKind, eventName }: Static<typeof shape>, happened: EventKey) =>
  matchesName(source, happened.source) &&
  matchesName(eventKind, happened.kind) &&
  matchesName(eventName, happened.eventName)

const matchesName = (wanted: string | undefined, name: string) =>
  wanted === undefined || wanted === '*' || wanted === name
