import { Button, Text } from '@mantine/core'

/** Submits a form by its id, with the key that does the same. For the footer of a `SidePanel`. */
export const SaveButton = ({ form, label = 'Save' }: { form: string; label?: string }) => (
  <>
    <Button type="submit" form={form}>
      {label}
    </Button>
    <Text size="xs" c="dimmed" visibleFrom="sm">
      Ctrl-Enter saves
    </Text>
  </>
)
