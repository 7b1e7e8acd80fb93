import { useComputedColorScheme } from '@mantine/core'
import { BarChart, LineChart, PieChart } from 'echarts/charts'
import { AriaComponent, GridComponent, LegendComponent, TitleComponent, TooltipComponent } from 'echarts/components'
import { type EChartsCoreOption, init, use } from 'echarts/core'
import { CanvasRenderer } from 'echarts/renderers'
import { useEffect, useRef } from 'react'

use([
  ...[BarChart, LineChart, PieChart],
  ...[AriaComponent, GridComponent, LegendComponent, TitleComponent, TooltipComponent],
  CanvasRenderer,
])

export type EChartProps = {
  /** What the chart shows, for assistive technology. */
  label: string
  /** In px. */
  height: number
  option: EChartsCoreOption
}

/** The chart of `Chart`. It follows the width of its container and the colours of the page. */
export function EChart({ label, height, option }: EChartProps) {
  const host = useRef<HTMLDivElement>(null)
  const scheme = useComputedColorScheme('light')
  useEffect(() => {
    const style = getComputedStyle(document.documentElement)
    const [text, line, accent] = ['--text-quiet', '--line', '--mantine-primary-color-filled'].map((name) =>
      style.getPropertyValue(name).trim(),
    )
    const axis = {
      axisLabel: { color: text },
      axisLine: { lineStyle: { color: line } },
      splitLine: { lineStyle: { color: line } },
    }
    const chart = init(host.current, {
      color: [accent, '#d98c2b', '#7a6fc4', '#4f9d69', '#c2577a', '#5b8fd6', '#a88b5a', '#8a9a9a'],
      backgroundColor: 'transparent',
      textStyle: { color: text },
      legend: { textStyle: { color: text } },
      categoryAxis: { ...axis, splitLine: { show: false } },
      valueAxis: axis,
      timeAxis: axis,
    })
    // A tooltip made of HTML would need inline styles, which the policy forbids.
    chart.setOption({
      animation: false,
      // It writes what the chart shows into the label, which begins with the given one.
      aria: { enabled: true, label: { general: { withoutTitle: `${label}. ` } } },
      ...option,
      tooltip: { renderMode: 'richText', ...(option.tooltip as object) },
    })
    const observer = new ResizeObserver(() => chart.resize())
    observer.observe(host.current!)
    return () => {
      observer.disconnect()
      chart.dispose()
    }
  }, [label, option, scheme])
  return <div ref={host} role="img" aria-label={label} style={{ height, width: '100%' }} />
}
