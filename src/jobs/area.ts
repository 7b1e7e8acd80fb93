import type { AnyElysia } from 'elysia'
import { connect, type Provision } from '../core/extension'
import { type EventSubscriber, eventSubscribers } from './event-dispatcher'
import { type HousekeepingTask, housekeepingTasks } from './housekeeping'
import { type JobHandler, type JobSource, jobHandlers, jobSources } from './worker'

/** Work of a process besides requests. */
export type BackgroundWork = {
  /** Starts no new work, and closes what would stay open forever. */
  stop?(): void
  /** Ends what is still running when the grace period of a shutdown is over. */
  abort?(): void
  /** Resolves when the work has ended that a shutdown waits for within its grace period. */
  finish?(): Promise<unknown>
}

/** Everything that an area of the server consists of. */
export type Area = {
  name: string
  /** Routes below `/api`. */
  routes?: readonly AnyElysia[]
  /** Routes below `/api` for paths that no route of any area matches. */
  fallbackRoutes?: AnyElysia
  /** Handlers by the kind that the table `jobs` stores. */
  jobs?: Record<string, JobHandler>
  jobSources?: JobSource[]
  subscribers?: EventSubscriber[]
  /** Tasks that run for each tenant in use, one after the other, under a lease. */
  housekeeping?: Record<string, HousekeepingTask>
  /** Values for slots and extension points of other areas. */
  provides?: Provision[]
  /** Starts the background work of a serving process. */
  start?(): BackgroundWork | BackgroundWork[]
}

/** Returns the area; its type is checked. */
export const defineArea = (area: Area) => area

/**
 * Connects areas with each other. Another call replaces the previous connections.
 * @throws when two areas have one name, a slot is provided by no area or more than one, or a kind of jobs has two
 * handlers
 */
export function compose(areas: readonly Area[]) {
  const names = areas.map(({ name }) => name)
  const duplicate = names.find((name, index) => names.indexOf(name) !== index)
  if (duplicate) throw new Error(`There are two areas with the name "${duplicate}".`)
  connect(
    areas.map(({ name, jobs = {}, jobSources: sources = [], subscribers = [], housekeeping = {}, provides = [] }) => ({
      name,
      provides: [
        jobHandlers.provide(jobs),
        jobSources.provide(sources),
        eventSubscribers.provide(subscribers),
        housekeepingTasks.provide(housekeeping),
        ...provides,
      ],
    })),
  )
}

/**
 * Adds the routes of all areas below `/api`, those for unmatched paths last. Each is added by itself: an instance of
 * Elysia between it and the app would add it once more, which a start and its memory would pay for.
 */
export const mountRoutes = (areas: readonly Area[]) => (app: AnyElysia) => {
  const groups = [...areas.flatMap(({ routes }) => routes ?? []), ...areas.flatMap((area) => area.fallbackRoutes ?? [])]
  for (const { method, path, handler, hooks } of groups.flatMap((group) => group.routes))
    app.route(method, `/api${path}`, handler as (context: object) => unknown, hooks)
  return app
}

/** Starts the background work of all areas. Returns functions that stop it, abort it and wait for it. */
export function startAreas(areas: readonly Area[]): Required<BackgroundWork> {
  const running = areas.flatMap(({ start }) => start?.() ?? [])
  return {
    stop: () => {
      for (const work of running) work.stop?.()
    },
    abort: () => {
      for (const work of running) work.abort?.()
    },
    finish: () => Promise.all(running.map((work) => work.finish?.())),
  }
}
