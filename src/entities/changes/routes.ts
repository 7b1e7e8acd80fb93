import { Elysia } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { LIST_FORMS } from '../../core/query-lists'
import { blueprintParams, filterParameters, flatParameter, jsonContent, toParameter } from '../parameters'
import { subscribe } from './subscription'

const lastEventIdParameter = [
  'lastEventId',
  'string',
  'resumes after this event ID, for clients that cannot send the `Last-Event-ID` header',
] as const

export const changeRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .get('/changes', ({ ctx, params, request }) => subscribe(ctx, params.key, request), {
    anyone: true,
    params: blueprintParams,
    detail: {
      operationId: 'streamEntityChanges',
      summary: 'Stream live changes',
      description:
        'Sends server-sent events for changes to the entities that a list with the same filters (including `$q`) returns. ' +
        '`ready` is the first event. `create` and `update` contain the entity as in the list, `delete` its `_id` and ' +
        '`identifier`. An entity that becomes visible or starts to match is sent as `create`, one that no longer matches ' +
        'as `delete`. Clients that send the last event ID, as browsers do, receive every event since then, for up to a day. ' +
        'If the ID is too old, or if permissions, roles or the query have changed, ' +
        '`reset` is sent instead: reload the list and keep listening. The stream ends when you lose access, ' +
        'or stop reading for 30 s.',
      parameters: [
        ...filterParameters.filter(([name]) => name === '$select' || name === '$timezone'),
        flatParameter,
        ['$q', 'string', 'words that entities must contain'] as const,
        ['$qProps', 'string', `properties to search, ${LIST_FORMS}`] as const,
        lastEventIdParameter,
      ].map(toParameter),
      responses: {
        200: { description: 'One event per change', content: { 'text/event-stream': { schema: { type: 'string' } } } },
        429: jsonContent(ProblemShape, 'Too many streams for the caller or the tenant'),
      },
    },
  })
