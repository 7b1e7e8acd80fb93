import { ActionIcon, Popover, Skeleton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconColumns3 } from '@tabler/icons-react'
import { lazy, Suspense } from 'react'
import type { ColumnLayout } from './column-layout'

const ColumnList = lazy(async () => ({ default: (await import('./column-list')).ColumnList }))

/** Chooses the columns of a list and their order. */
export function ColumnMenu({ layout }: { layout: ColumnLayout }) {
  const [isOpen, { toggle, close }] = useDisclosure()
  return (
    <Popover opened={isOpen} onChange={(opened) => !opened && close()} position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <ActionIcon variant="default" aria-label="Columns" title="Columns" onClick={toggle}>
          <IconColumns3 size={16} />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown p={8} aria-label="Columns" aria-labelledby={undefined}>
        <Suspense fallback={<Skeleton w={220} h={160} animate={false} />}>
          {isOpen && <ColumnList layout={layout} />}
        </Suspense>
      </Popover.Dropdown>
    </Popover>
  )
}
