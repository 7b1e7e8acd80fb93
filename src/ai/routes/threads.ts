import { Elysia, status, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { done, one } from '../../core/shapes'
import { NewThread, Thread, ThreadList } from '../shapes'
import * as threads from '../threads'

export const threadRoutes = new Elysia({ prefix: '/ai/threads', tags: ['ai'] })
  .use(aiGuard('ai'))
  .get('/', ({ ctx, query, request, set }) => threads.list(ctx, query, { request, set }), {
    can: 'user',
    query: ThreadList,
    response: t.Array(Thread),
    detail: { summary: 'One’s threads, newest first, without their messages; admins see those of all' },
  })
  .get('/:id', ({ ctx, params }) => threads.get(ctx, params.id), {
    can: 'user',
    params: one,
    response: { 200: Thread, 404: ProblemShape },
    detail: { summary: 'A thread with all that was said in it' },
  })
  .post('/', async ({ ctx, body }) => status(201, await threads.create(ctx, body)), {
    can: 'user',
    body: NewThread,
    response: { 201: Thread, 404: ProblemShape },
    detail: { summary: 'Begins a thread with an integration' },
  })
  .delete('/:id', ({ ctx, params }) => threads.remove(ctx, params.id), {
    can: 'user',
    params: one,
    response: { 200: done, 404: ProblemShape },
    detail: { summary: 'Removes a thread, and what only it knows' },
  })
