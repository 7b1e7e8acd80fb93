import { createRootRoute, createRoute } from '@tanstack/react-router'
import { Frame } from './frame'
import { NotFound } from './not-found'

/** The root of all routes. */
export const rootRoute = createRootRoute({ notFoundComponent: NotFound })

/** The parent of the routes inside the frame, which asks for a sign-in first. */
export const frameRoute = createRoute({ getParentRoute: () => rootRoute, id: 'frame', component: Frame })
