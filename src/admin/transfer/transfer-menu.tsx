import { ActionIcon, Menu } from '@mantine/core'
import { IconDots, IconDownload, IconUpload } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link, useLocation, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { blueprintQuery } from '../api/queries'
import type { ListSearch } from '../data/entity-queries'

const ExportDialog = lazy(async () => ({ default: (await import('./export-dialog')).ExportDialog }))

/** The part of a list's address that opens its export. */
const EXPORT_HASH = 'export'

/** Leads from a list to its export and to the import into its blueprint. */
export function TransferMenu({ blueprint: key, search }: { blueprint: string; search: ListSearch }) {
  const isExporting = useLocation().hash === EXPORT_HASH
  const navigate = useNavigate()
  const setIsExporting = (value: boolean) =>
    navigate({ to: '.', search: true as never, hash: value ? EXPORT_HASH : '', replace: true })
  const { data: blueprint } = useQuery(blueprintQuery(key))
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" aria-label="More">
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconDownload size={16} />} onClick={() => setIsExporting(true)}>
            Export
          </Menu.Item>
          <Menu.Item
            leftSection={<IconUpload size={16} />}
            component={Link}
            to="/data/$blueprint/all/import"
            params={{ blueprint: key } as never}
          >
            Import
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isExporting && blueprint && (
        <Suspense>
          <ExportDialog blueprint={blueprint} search={search} onClose={() => setIsExporting(false)} />
        </Suspense>
      )}
    </>
  )
}
