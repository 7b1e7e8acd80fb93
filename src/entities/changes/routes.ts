import { Elysia } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { filters, form, json, ofBlueprint, parameter } from '../routes'
import { listen } from './changes'

const last = [
  'lastEventId',
  'string',
  'goes on after the event with this id, for clients that cannot send the header `Last-Event-ID`',
] as const

export const changeRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .get('/changes', ({ ctx, params, request }) => listen(ctx, params.key, request), {
    anyone: true,
    params: ofBlueprint,
    detail: {
      operationId: 'streamEntityChanges',
      summary: 'Stream live changes',
      description:
        'Server-sent events: what happens to the entities that a list with the same filters (also `$q`) shows to you. ' +
        '`ready` comes first, `create` and `update` bring the entity as the list shows it, `delete` its `_id` and ' +
        '`identifier`. What comes into your sight or the filters by a change is told as `create`, what goes out of them ' +
        'as `delete`. Whoever sends the last id, as browsers do, is told exactly what happened since, for a day. ' +
        'Where that cannot be told, because it is too long ago, or because rules, roles or the query are others now, ' +
        '`reset` comes instead: read the list again, and go on listening. The stream ends when you may not listen any ' +
        'more, or take nothing for 30 s.',
      parameters: [
        ...filters.filter(([name]) => name === '$select'),
        form,
        ['$q', 'string', 'words that must be in the entity'] as const,
        ['$qProps', 'string', 'the properties to search within, comma-separated'] as const,
        last,
      ].map(parameter),
      responses: {
        200: { description: 'The events', content: { 'text/event-stream': { schema: { type: 'string' } } } },
        429: json(ProblemShape, 'The caller or the tenant has too many streams'),
      },
    },
  })
