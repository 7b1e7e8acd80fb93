import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { frameRoute } from '../frame/frame-route'

// No entity has the identifier "all".
const chartBuilder = createRoute({
  getParentRoute: () => frameRoute,
  path: 'data/$blueprint/all/chart',
  component: lazyRouteComponent(() => import('./chart-builder'), 'ChartBuilder'),
})

/** The routes of charts. */
export const chartRoutes = [chartBuilder] as const
