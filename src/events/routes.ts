import { Elysia, status, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { sendPage } from '../core/response-headers'
import { IdParams, SuccessShape } from '../core/shapes'
import { sumEvents } from './aggregate'
import * as records from './events'
import { listFailingJobs, retryJob } from './failing-jobs'
import { listKnownEvents } from './known-events'
import {
  CountQuery,
  Event,
  EventCount,
  EventList,
  EventSum,
  FailingJob,
  FilterOptions,
  KnownEvents,
  NewEvent,
  SumQuery,
} from './shapes'

const recordRoutes = new Elysia({ prefix: '/events', tags: ['events'] })
  .use(guard('events'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, records.list(ctx, query, request)), {
    can: 'curator',
    query: EventList,
    response: t.Array(Event),
    detail: { operationId: 'listEvents', summary: 'List events' },
  })
  .get('/filter-options', ({ ctx }) => records.listFilterOptions(ctx), {
    can: 'curator',
    response: FilterOptions,
    detail: { operationId: 'getEventFilterOptions', summary: 'List the filter values of events' },
  })
  .get('/known', ({ ctx }) => listKnownEvents(ctx), {
    can: 'curator',
    response: KnownEvents,
    detail: {
      operationId: 'listKnownEvents',
      summary: 'List the events that integrations and plugins can subscribe to',
      description: 'Returns system and blueprint events, and events recently recorded by callers and lambdas.',
    },
  })
  .get('/count', ({ ctx, query, request }) => records.count(ctx, query, request), {
    can: 'curator',
    costly: true,
    query: CountQuery,
    response: EventCount,
    detail: { operationId: 'countEvents', summary: 'Count events' },
  })
  .get('/sum', ({ ctx, query, request }) => sumEvents(ctx, query, request), {
    can: 'curator',
    costly: true,
    query: SumQuery,
    response: EventSum,
    detail: { operationId: 'sumEvents', summary: 'Sum a number in the metadata of events' },
  })
  .get('/:eventId', ({ ctx, params }) => records.get(ctx, params.eventId), {
    can: 'curator',
    params: t.Object({ eventId: t.String() }),
    response: { 200: Event, 404: ProblemShape },
    detail: { operationId: 'getEvent', summary: 'Get an event' },
  })
  .post('/', async ({ ctx, body }) => status(201, await records.create(ctx, body)), {
    can: 'teller',
    addsData: true,
    body: NewEvent,
    response: { 201: Event },
    detail: {
      operationId: 'createEvent',
      summary: 'Create an event',
      description: 'Subscribed plugins and integrations receive the event.',
    },
  })

const jobRoutes = new Elysia({ prefix: '/jobs', tags: ['events'] })
  .use(guard('events'))
  .get('/failing', ({ ctx }) => listFailingJobs(ctx), {
    can: 'privileged',
    response: t.Array(FailingJob),
    detail: {
      operationId: 'listFailingJobs',
      summary: 'List failing jobs',
      description:
        'Background jobs whose last attempt failed and that will be retried, at most 100, the next attempt first.',
    },
  })
  .post('/:id/retry', ({ ctx, params }) => retryJob(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: {
      operationId: 'retryJob',
      summary: 'Retry a failing job now',
      description: 'Runs the next attempt now. Jobs that wait behind this one follow once it succeeds.',
    },
  })

/** The routes of events and of jobs that fail in the background. */
export const eventRoutes = [recordRoutes, jobRoutes]
