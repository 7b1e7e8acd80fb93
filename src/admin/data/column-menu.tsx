import { ActionIcon, Popover, Skeleton, Tooltip } from '@mantine/core'
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
        <Tooltip label="Columns">
          <ActionIcon variant="default" aria-label="Columns" onClick={toggle}>
            <IconColumns3 size={16} />
          </ActionIcon>
        </Tooltip>
      </Popover.Target>
      <Popover.Dropdown p={8}>
        <Suspense fallback={<Skeleton w={220} h={160} animate={false} />}>
          {isOpen && <ColumnList layout={layout} />}
        </Suspense>
      </Popover.Dropdown>
    </Popover>
  )
}
