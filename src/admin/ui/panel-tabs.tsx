import { Tabs } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'

/** One part of a panel that has several. */
export type PanelTab = { key: string; label: string; content: ReactNode }

/** The parts of a panel, of which one is shown. The address says which: `?show=members`. */
export function PanelTabs({ label, tabs }: { label: string; tabs: readonly PanelTab[] }) {
  const search = useSearch({ strict: false }) as { show?: string }
  const navigate = useNavigate()
  const first = tabs[0]!.key
  const value = tabs.some(({ key }) => key === search.show) ? search.show! : first
  const show = (next: string | null) =>
    navigate({ to: '.', search: { ...search, show: next === first ? undefined : next } as never, replace: true })
  return (
    <Tabs value={value} onChange={show} keepMounted={false}>
      <Tabs.List aria-label={label} mb="md">
        {tabs.map(({ key, label: title }) => (
          <Tabs.Tab key={key} value={key} px={6}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(({ key, content }) => (
        <Tabs.Panel key={key} value={key}>
          {content}
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}
