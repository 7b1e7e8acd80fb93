import { ActionIcon, Drawer, Tooltip } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { IconCode } from '@tabler/icons-react'
import { lazy, Suspense } from 'react'

const ApiExamples = lazy(async () => ({ default: (await import('./api-examples')).ApiExamples }))

/** A request as a program would make it. */
export type ApiRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Such as `/api/users`. */
  path: string
  query?: Record<string, string>
  body?: unknown
}

/** Shows the request of a screen as programs write it. */
export function ApiButton({ request }: { request: ApiRequest }) {
  const [isOpen, { open, close }] = useDisclosure()
  return (
    <>
      <Tooltip label="How a program does this">
        <ActionIcon variant="default" aria-label="API" onClick={open}>
          <IconCode size={16} />
        </ActionIcon>
      </Tooltip>
      <Drawer opened={isOpen} onClose={close} position="right" title="API">
        <Suspense>{isOpen && <ApiExamples request={request} />}</Suspense>
      </Drawer>
    </>
  )
}
