import { Screen } from '../ui/screen'

export const Home = () => <Screen title="Home">{null}</Screen>
