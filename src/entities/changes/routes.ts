import { Elysia } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { LIST_FORMS } from '../../core/query-lists'
import { blueprintParams, filterParameters, flatParameter, jsonContent, toParameter } from '../parameters'
import { subscribe } from './subscription'

const lastEventIdParameter = [
  'lastEventId',
  'string',
  'resumes after the event with this id, for clients that cannot send the header `Last-Event-ID`',
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
        'Server-sent events with the changes of the entities that a list with the same filters (also `$q`) shows you. ' +
        '`ready` comes first, `create` and `update` bring the entity as the list shows it, `delete` its `_id` and ' +
        '`identifier`. An entity that becomes visible or starts to match the filters is sent as `create`, one that no longer does ' +
        'as `delete`. A client that sends the last id, as browsers do, gets exactly what happened since then, for up to a day. ' +
        'If that is not possible, because it is too long ago or because permissions, roles or the query have changed, ' +
        '`reset` is sent instead: reload the list and keep listening. The stream ends when you lose access, ' +
        'or read nothing for 30 s.',
      parameters: [
        ...filterParameters.filter(([name]) => name === '$select' || name === '$timezone'),
        flatParameter,
        ['$q', 'string', 'words that the entity must contain'] as const,
        ['$qProps', 'string', `the properties to search within, ${LIST_FORMS}`] as const,
        lastEventIdParameter,
      ].map(toParameter),
      responses: {
        200: {
          description: 'An event for each change',
          content: { 'text/event-stream': { schema: { type: 'string' } } },
        },
        429: jsonContent(ProblemShape, 'The caller or the tenant has too many streams'),
      },
    },
  })
