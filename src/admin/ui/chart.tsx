import { Skeleton } from '@mantine/core'
import { lazy, Suspense } from 'react'
import type { EChartProps } from './echart'

const EChart = lazy(async () => ({ default: (await import('./echart')).EChart }))

/** A chart from options of ECharts. The library is loaded when the first one is shown. */
export const Chart = (props: EChartProps) => (
  <Suspense fallback={<Skeleton height={props.height} animate={false} />}>
    <EChart {...props} />
  </Suspense>
)
