import { Screen } from '../../ui/screen'

/** The files that agents answer from. */
export const Knowledge = () => <Screen title="Knowledge">{null}</Screen>
