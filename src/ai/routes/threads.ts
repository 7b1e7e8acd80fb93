import { Elysia, status, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { sendPage } from '../../core/response-headers'
import { IdParams, SuccessShape } from '../../core/shapes'
import { NewThread, Thread, ThreadList } from '../shapes'
import * as threads from '../threads'

export const threadRoutes = new Elysia({ prefix: '/ai/threads', tags: ['ai'] })
  .use(aiGuard('ai'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, threads.list(ctx, query)), {
    can: 'user',
    query: ThreadList,
    response: t.Array(Thread),
    detail: {
      operationId: 'listThreads',
      summary: 'List your threads',
      description:
        'Newest first, without their messages. Admins see the threads of all users. A page ends at 4 MiB, also before its limit: follow its `Link` header.',
    },
  })
  .get('/:id', ({ ctx, params }) => threads.get(ctx, params.id), {
    can: 'user',
    params: IdParams,
    response: { 200: Thread, 404: ProblemShape },
    detail: { operationId: 'getThread', summary: 'Get a thread with its messages' },
  })
  .post('/', async ({ ctx, body }) => status(201, await threads.create(ctx, body)), {
    can: 'user',
    addsData: true,
    body: NewThread,
    response: { 201: Thread, 404: ProblemShape },
    detail: {
      operationId: 'createThread',
      summary: 'Create a thread',
      description: 'Starts a conversation with an integration or an agent.',
    },
  })
  .delete('/:id', ({ ctx, params }) => threads.remove(ctx, params.id), {
    can: 'user',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: {
      operationId: 'deleteThread',
      summary: 'Delete a thread',
      description: 'Also deletes the vector stores of the thread, with their files.',
    },
  })
