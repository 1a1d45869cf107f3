from google.protobuf import timestamp_pb2 as _timestamp_pb2
from gris_api.common.v1 import cost_pb2 as _cost_pb2
from gris_api.common.v1 import histogram_pb2 as _histogram_pb2
from gris_api.dp.v1 import question_pb2 as _question_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Mechanism(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MECHANISM_UNSPECIFIED: _ClassVar[Mechanism]
    MECHANISM_KNOWN_LAP: _ClassVar[Mechanism]
    MECHANISM_KNOWN_GUMB: _ClassVar[Mechanism]
    MECHANISM_UNK_LAP: _ClassVar[Mechanism]
    MECHANISM_UNK_GUMB: _ClassVar[Mechanism]
    MECHANISM_BOUND_GAUSS: _ClassVar[Mechanism]
    MECHANISM_BOUND_MOMENTS: _ClassVar[Mechanism]
    MECHANISM_QUANTILE_GUMB: _ClassVar[Mechanism]

class CountNoise(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COUNT_NOISE_UNSPECIFIED: _ClassVar[CountNoise]
    COUNT_NOISE_LAPLACE: _ClassVar[CountNoise]
    COUNT_NOISE_GAUSSIAN: _ClassVar[CountNoise]

class Consistency(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONSISTENCY_UNSPECIFIED: _ClassVar[Consistency]
    CONSISTENCY_KEYED: _ClassVar[Consistency]
    CONSISTENCY_FRESH: _ClassVar[Consistency]

class BoundedBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOUNDED_BY_UNSPECIFIED: _ClassVar[BoundedBy]
    BOUNDED_BY_IN_QUERY: _ClassVar[BoundedBy]
    BOUNDED_BY_PREPARED: _ClassVar[BoundedBy]
    BOUNDED_BY_ASSUMED: _ClassVar[BoundedBy]

class ValueType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALUE_TYPE_UNSPECIFIED: _ClassVar[ValueType]
    VALUE_TYPE_INT64: _ClassVar[ValueType]
    VALUE_TYPE_DECIMAL: _ClassVar[ValueType]
    VALUE_TYPE_DATE: _ClassVar[ValueType]

class AggregateFunction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AGGREGATE_FUNCTION_UNSPECIFIED: _ClassVar[AggregateFunction]
    AGGREGATE_FUNCTION_SUM: _ClassVar[AggregateFunction]
    AGGREGATE_FUNCTION_MEMBERS: _ClassVar[AggregateFunction]
    AGGREGATE_FUNCTION_ROWS: _ClassVar[AggregateFunction]

class EngineFeature(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENGINE_FEATURE_UNSPECIFIED: _ClassVar[EngineFeature]
    ENGINE_FEATURE_PINOT_MULTISTAGE: _ClassVar[EngineFeature]
    ENGINE_FEATURE_BOUNDED_COPY: _ClassVar[EngineFeature]
    ENGINE_FEATURE_FIRST_COUNTS: _ClassVar[EngineFeature]
    ENGINE_FEATURE_CLOSED_STREAM: _ClassVar[EngineFeature]

class CompleteBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPLETE_BY_UNSPECIFIED: _ClassVar[CompleteBy]
    COMPLETE_BY_OFFSETS: _ClassVar[CompleteBy]
    COMPLETE_BY_DELAY: _ClassVar[CompleteBy]

class IntervalKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERVAL_KIND_UNSPECIFIED: _ClassVar[IntervalKind]
    INTERVAL_KIND_NONE: _ClassVar[IntervalKind]
    INTERVAL_KIND_PLAIN: _ClassVar[IntervalKind]
    INTERVAL_KIND_GIVEN_SHOWN: _ClassVar[IntervalKind]
    INTERVAL_KIND_SIMULTANEOUS: _ClassVar[IntervalKind]

class TimeUnit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TIME_UNIT_UNSPECIFIED: _ClassVar[TimeUnit]
    TIME_UNIT_DAYS: _ClassVar[TimeUnit]
    TIME_UNIT_SECONDS: _ClassVar[TimeUnit]
    TIME_UNIT_MILLISECONDS: _ClassVar[TimeUnit]
    TIME_UNIT_MICROSECONDS: _ClassVar[TimeUnit]

class RefreshPeriod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFRESH_PERIOD_UNSPECIFIED: _ClassVar[RefreshPeriod]
    REFRESH_PERIOD_DAY: _ClassVar[RefreshPeriod]
    REFRESH_PERIOD_WEEK: _ClassVar[RefreshPeriod]
    REFRESH_PERIOD_MONTH: _ClassVar[RefreshPeriod]

class FilterOperator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILTER_OPERATOR_UNSPECIFIED: _ClassVar[FilterOperator]
    FILTER_OPERATOR_IN: _ClassVar[FilterOperator]
    FILTER_OPERATOR_NOT_IN: _ClassVar[FilterOperator]
    FILTER_OPERATOR_RANGE: _ClassVar[FilterOperator]

class GridScale(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GRID_SCALE_UNSPECIFIED: _ClassVar[GridScale]
    GRID_SCALE_LINEAR: _ClassVar[GridScale]
    GRID_SCALE_GEOMETRIC: _ClassVar[GridScale]
    GRID_SCALE_DATES: _ClassVar[GridScale]

class MemberValue(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMBER_VALUE_UNSPECIFIED: _ClassVar[MemberValue]
    MEMBER_VALUE_TOTAL: _ClassVar[MemberValue]
    MEMBER_VALUE_MEAN: _ClassVar[MemberValue]
    MEMBER_VALUE_LARGEST: _ClassVar[MemberValue]
    MEMBER_VALUE_ROWS: _ClassVar[MemberValue]

class RankFunction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RANK_FUNCTION_UNSPECIFIED: _ClassVar[RankFunction]
    RANK_FUNCTION_QUANTILE: _ClassVar[RankFunction]
    RANK_FUNCTION_SMALLEST: _ClassVar[RankFunction]
    RANK_FUNCTION_LARGEST: _ClassVar[RankFunction]
MECHANISM_UNSPECIFIED: Mechanism
MECHANISM_KNOWN_LAP: Mechanism
MECHANISM_KNOWN_GUMB: Mechanism
MECHANISM_UNK_LAP: Mechanism
MECHANISM_UNK_GUMB: Mechanism
MECHANISM_BOUND_GAUSS: Mechanism
MECHANISM_BOUND_MOMENTS: Mechanism
MECHANISM_QUANTILE_GUMB: Mechanism
COUNT_NOISE_UNSPECIFIED: CountNoise
COUNT_NOISE_LAPLACE: CountNoise
COUNT_NOISE_GAUSSIAN: CountNoise
CONSISTENCY_UNSPECIFIED: Consistency
CONSISTENCY_KEYED: Consistency
CONSISTENCY_FRESH: Consistency
BOUNDED_BY_UNSPECIFIED: BoundedBy
BOUNDED_BY_IN_QUERY: BoundedBy
BOUNDED_BY_PREPARED: BoundedBy
BOUNDED_BY_ASSUMED: BoundedBy
VALUE_TYPE_UNSPECIFIED: ValueType
VALUE_TYPE_INT64: ValueType
VALUE_TYPE_DECIMAL: ValueType
VALUE_TYPE_DATE: ValueType
AGGREGATE_FUNCTION_UNSPECIFIED: AggregateFunction
AGGREGATE_FUNCTION_SUM: AggregateFunction
AGGREGATE_FUNCTION_MEMBERS: AggregateFunction
AGGREGATE_FUNCTION_ROWS: AggregateFunction
ENGINE_FEATURE_UNSPECIFIED: EngineFeature
ENGINE_FEATURE_PINOT_MULTISTAGE: EngineFeature
ENGINE_FEATURE_BOUNDED_COPY: EngineFeature
ENGINE_FEATURE_FIRST_COUNTS: EngineFeature
ENGINE_FEATURE_CLOSED_STREAM: EngineFeature
COMPLETE_BY_UNSPECIFIED: CompleteBy
COMPLETE_BY_OFFSETS: CompleteBy
COMPLETE_BY_DELAY: CompleteBy
INTERVAL_KIND_UNSPECIFIED: IntervalKind
INTERVAL_KIND_NONE: IntervalKind
INTERVAL_KIND_PLAIN: IntervalKind
INTERVAL_KIND_GIVEN_SHOWN: IntervalKind
INTERVAL_KIND_SIMULTANEOUS: IntervalKind
TIME_UNIT_UNSPECIFIED: TimeUnit
TIME_UNIT_DAYS: TimeUnit
TIME_UNIT_SECONDS: TimeUnit
TIME_UNIT_MILLISECONDS: TimeUnit
TIME_UNIT_MICROSECONDS: TimeUnit
REFRESH_PERIOD_UNSPECIFIED: RefreshPeriod
REFRESH_PERIOD_DAY: RefreshPeriod
REFRESH_PERIOD_WEEK: RefreshPeriod
REFRESH_PERIOD_MONTH: RefreshPeriod
FILTER_OPERATOR_UNSPECIFIED: FilterOperator
FILTER_OPERATOR_IN: FilterOperator
FILTER_OPERATOR_NOT_IN: FilterOperator
FILTER_OPERATOR_RANGE: FilterOperator
GRID_SCALE_UNSPECIFIED: GridScale
GRID_SCALE_LINEAR: GridScale
GRID_SCALE_GEOMETRIC: GridScale
GRID_SCALE_DATES: GridScale
MEMBER_VALUE_UNSPECIFIED: MemberValue
MEMBER_VALUE_TOTAL: MemberValue
MEMBER_VALUE_MEAN: MemberValue
MEMBER_VALUE_LARGEST: MemberValue
MEMBER_VALUE_ROWS: MemberValue
RANK_FUNCTION_UNSPECIFIED: RankFunction
RANK_FUNCTION_QUANTILE: RankFunction
RANK_FUNCTION_SMALLEST: RankFunction
RANK_FUNCTION_LARGEST: RankFunction

class Contributions(_message.Message):
    __slots__ = ("bounded_by", "typical", "periods", "grid")
    BOUNDED_BY_FIELD_NUMBER: _ClassVar[int]
    TYPICAL_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    GRID_FIELD_NUMBER: _ClassVar[int]
    bounded_by: BoundedBy
    typical: int
    periods: int
    grid: int
    def __init__(self, bounded_by: _Optional[_Union[BoundedBy, str]] = ..., typical: _Optional[int] = ..., periods: _Optional[int] = ..., grid: _Optional[int] = ...) -> None: ...

class Shift(_message.Message):
    __slots__ = ("factor", "denominator", "count_variance", "total_variance")
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    DENOMINATOR_FIELD_NUMBER: _ClassVar[int]
    COUNT_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    factor: int
    denominator: int
    count_variance: str
    total_variance: str
    def __init__(self, factor: _Optional[int] = ..., denominator: _Optional[int] = ..., count_variance: _Optional[str] = ..., total_variance: _Optional[str] = ...) -> None: ...

class OneLook(_message.Message):
    __slots__ = ("min_count", "threshold")
    MIN_COUNT_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    min_count: int
    threshold: str
    def __init__(self, min_count: _Optional[int] = ..., threshold: _Optional[str] = ...) -> None: ...

class NamesLook(_message.Message):
    __slots__ = ("typical", "units", "max_names", "min_count", "threshold", "noise_variance")
    TYPICAL_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    MAX_NAMES_FIELD_NUMBER: _ClassVar[int]
    MIN_COUNT_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    NOISE_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    typical: int
    units: str
    max_names: int
    min_count: int
    threshold: str
    noise_variance: str
    def __init__(self, typical: _Optional[int] = ..., units: _Optional[str] = ..., max_names: _Optional[int] = ..., min_count: _Optional[int] = ..., threshold: _Optional[str] = ..., noise_variance: _Optional[str] = ...) -> None: ...

class SummedColumn(_message.Message):
    __slots__ = ("name", "quantum", "lower", "upper", "share", "noise_variance", "own_count", "function", "condition")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    NOISE_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    OWN_COUNT_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    name: str
    quantum: str
    lower: str
    upper: str
    share: str
    noise_variance: str
    own_count: OwnCount
    function: AggregateFunction
    condition: int
    def __init__(self, name: _Optional[str] = ..., quantum: _Optional[str] = ..., lower: _Optional[str] = ..., upper: _Optional[str] = ..., share: _Optional[str] = ..., noise_variance: _Optional[str] = ..., own_count: _Optional[_Union[OwnCount, _Mapping]] = ..., function: _Optional[_Union[AggregateFunction, str]] = ..., condition: _Optional[int] = ...) -> None: ...

class OwnCount(_message.Message):
    __slots__ = ("share", "noise_variance")
    SHARE_FIELD_NUMBER: _ClassVar[int]
    NOISE_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    share: str
    noise_variance: str
    def __init__(self, share: _Optional[str] = ..., noise_variance: _Optional[str] = ...) -> None: ...

class TwoSided(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AtLeast(_message.Message):
    __slots__ = ("largest_cut",)
    LARGEST_CUT_FIELD_NUMBER: _ClassVar[int]
    largest_cut: str
    def __init__(self, largest_cut: _Optional[str] = ...) -> None: ...

class NoiseAlone(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShownNumber(_message.Message):
    __slots__ = ("title", "quantum", "may_be_missing", "two_sided", "at_least", "noise_alone")
    TITLE_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    MAY_BE_MISSING_FIELD_NUMBER: _ClassVar[int]
    TWO_SIDED_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    NOISE_ALONE_FIELD_NUMBER: _ClassVar[int]
    title: str
    quantum: str
    may_be_missing: bool
    two_sided: TwoSided
    at_least: AtLeast
    noise_alone: NoiseAlone
    def __init__(self, title: _Optional[str] = ..., quantum: _Optional[str] = ..., may_be_missing: bool = ..., two_sided: _Optional[_Union[TwoSided, _Mapping]] = ..., at_least: _Optional[_Union[AtLeast, _Mapping]] = ..., noise_alone: _Optional[_Union[NoiseAlone, _Mapping]] = ...) -> None: ...

class Sums(_message.Message):
    __slots__ = ("share", "columns", "aggregates", "ordered_by")
    SHARE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    AGGREGATES_FIELD_NUMBER: _ClassVar[int]
    ORDERED_BY_FIELD_NUMBER: _ClassVar[int]
    share: str
    columns: _containers.RepeatedCompositeFieldContainer[SummedColumn]
    aggregates: _containers.RepeatedCompositeFieldContainer[ShownNumber]
    ordered_by: int
    def __init__(self, share: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[SummedColumn, _Mapping]]] = ..., aggregates: _Optional[_Iterable[_Union[ShownNumber, _Mapping]]] = ..., ordered_by: _Optional[int] = ...) -> None: ...

class MechanismParameters(_message.Message):
    __slots__ = ("mechanism", "epsilon_per", "delta", "consistency", "tau", "clipped", "domain_size", "k", "in_element_order", "smallest_first", "having", "laplace", "gumbel", "bounded", "quantiles", "two_sided", "at_least", "noise_alone")
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    EPSILON_PER_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    TAU_FIELD_NUMBER: _ClassVar[int]
    CLIPPED_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    IN_ELEMENT_ORDER_FIELD_NUMBER: _ClassVar[int]
    SMALLEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    HAVING_FIELD_NUMBER: _ClassVar[int]
    LAPLACE_FIELD_NUMBER: _ClassVar[int]
    GUMBEL_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    TWO_SIDED_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    NOISE_ALONE_FIELD_NUMBER: _ClassVar[int]
    mechanism: Mechanism
    epsilon_per: str
    delta: str
    consistency: Consistency
    tau: int
    clipped: bool
    domain_size: int
    k: int
    in_element_order: bool
    smallest_first: bool
    having: str
    laplace: Laplace
    gumbel: Gumbel
    bounded: Bounded
    quantiles: Quantiles
    two_sided: TwoSided
    at_least: AtLeast
    noise_alone: NoiseAlone
    def __init__(self, mechanism: _Optional[_Union[Mechanism, str]] = ..., epsilon_per: _Optional[str] = ..., delta: _Optional[str] = ..., consistency: _Optional[_Union[Consistency, str]] = ..., tau: _Optional[int] = ..., clipped: bool = ..., domain_size: _Optional[int] = ..., k: _Optional[int] = ..., in_element_order: bool = ..., smallest_first: bool = ..., having: _Optional[str] = ..., laplace: _Optional[_Union[Laplace, _Mapping]] = ..., gumbel: _Optional[_Union[Gumbel, _Mapping]] = ..., bounded: _Optional[_Union[Bounded, _Mapping]] = ..., quantiles: _Optional[_Union[Quantiles, _Mapping]] = ..., two_sided: _Optional[_Union[TwoSided, _Mapping]] = ..., at_least: _Optional[_Union[AtLeast, _Mapping]] = ..., noise_alone: _Optional[_Union[NoiseAlone, _Mapping]] = ...) -> None: ...

class Laplace(_message.Message):
    __slots__ = ("delta_l0", "d_bar", "noise_scale")
    DELTA_L0_FIELD_NUMBER: _ClassVar[int]
    D_BAR_FIELD_NUMBER: _ClassVar[int]
    NOISE_SCALE_FIELD_NUMBER: _ClassVar[int]
    delta_l0: int
    d_bar: int
    noise_scale: str
    def __init__(self, delta_l0: _Optional[int] = ..., d_bar: _Optional[int] = ..., noise_scale: _Optional[str] = ...) -> None: ...

class Gumbel(_message.Message):
    __slots__ = ("d_bar", "count_noise", "noise_scale")
    D_BAR_FIELD_NUMBER: _ClassVar[int]
    COUNT_NOISE_FIELD_NUMBER: _ClassVar[int]
    NOISE_SCALE_FIELD_NUMBER: _ClassVar[int]
    d_bar: int
    count_noise: CountNoise
    noise_scale: str
    def __init__(self, d_bar: _Optional[int] = ..., count_noise: _Optional[_Union[CountNoise, str]] = ..., noise_scale: _Optional[str] = ...) -> None: ...

class Bounded(_message.Message):
    __slots__ = ("contributions", "units", "noise_variance", "noise_scale", "sums", "one_look", "names_look", "shift")
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    NOISE_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    NOISE_SCALE_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    ONE_LOOK_FIELD_NUMBER: _ClassVar[int]
    NAMES_LOOK_FIELD_NUMBER: _ClassVar[int]
    SHIFT_FIELD_NUMBER: _ClassVar[int]
    contributions: Contributions
    units: int
    noise_variance: str
    noise_scale: str
    sums: Sums
    one_look: OneLook
    names_look: NamesLook
    shift: Shift
    def __init__(self, contributions: _Optional[_Union[Contributions, _Mapping]] = ..., units: _Optional[int] = ..., noise_variance: _Optional[str] = ..., noise_scale: _Optional[str] = ..., sums: _Optional[_Union[Sums, _Mapping]] = ..., one_look: _Optional[_Union[OneLook, _Mapping]] = ..., names_look: _Optional[_Union[NamesLook, _Mapping]] = ..., shift: _Optional[_Union[Shift, _Mapping]] = ...) -> None: ...

class TranslateQueryRequest(_message.Message):
    __slots__ = ("question", "data_version", "dialect")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    DATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    question: _question_pb2.Question
    data_version: str
    dialect: str
    def __init__(self, question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ..., data_version: _Optional[str] = ..., dialect: _Optional[str] = ...) -> None: ...

class ClosedStream(_message.Message):
    __slots__ = ("end", "complete_by", "replaced_until_closed", "start", "time_column", "offline_days_are_whole", "member_column", "replaced_by_same_member")
    END_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_BY_FIELD_NUMBER: _ClassVar[int]
    REPLACED_UNTIL_CLOSED_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    TIME_COLUMN_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_DAYS_ARE_WHOLE_FIELD_NUMBER: _ClassVar[int]
    MEMBER_COLUMN_FIELD_NUMBER: _ClassVar[int]
    REPLACED_BY_SAME_MEMBER_FIELD_NUMBER: _ClassVar[int]
    end: int
    complete_by: CompleteBy
    replaced_until_closed: bool
    start: int
    time_column: str
    offline_days_are_whole: bool
    member_column: str
    replaced_by_same_member: bool
    def __init__(self, end: _Optional[int] = ..., complete_by: _Optional[_Union[CompleteBy, str]] = ..., replaced_until_closed: bool = ..., start: _Optional[int] = ..., time_column: _Optional[str] = ..., offline_days_are_whole: bool = ..., member_column: _Optional[str] = ..., replaced_by_same_member: bool = ...) -> None: ...

class BoundedCopy(_message.Message):
    __slots__ = ("table", "member", "elements", "typical", "period")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    TYPICAL_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    table: str
    member: str
    elements: _containers.RepeatedScalarFieldContainer[str]
    typical: int
    period: str
    def __init__(self, table: _Optional[str] = ..., member: _Optional[str] = ..., elements: _Optional[_Iterable[str]] = ..., typical: _Optional[int] = ..., period: _Optional[str] = ...) -> None: ...

class EngineQuery(_message.Message):
    __slots__ = ("dialect", "sql", "requires", "look")
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    REQUIRES_FIELD_NUMBER: _ClassVar[int]
    LOOK_FIELD_NUMBER: _ClassVar[int]
    dialect: str
    sql: str
    requires: _containers.RepeatedScalarFieldContainer[EngineFeature]
    look: int
    def __init__(self, dialect: _Optional[str] = ..., sql: _Optional[str] = ..., requires: _Optional[_Iterable[_Union[EngineFeature, str]]] = ..., look: _Optional[int] = ...) -> None: ...

class ReadColumn(_message.Message):
    __slots__ = ("name", "type", "null_value", "smallest", "largest", "time_unit")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NULL_VALUE_FIELD_NUMBER: _ClassVar[int]
    SMALLEST_FIELD_NUMBER: _ClassVar[int]
    LARGEST_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: _histogram_pb2.ColumnType
    null_value: _question_pb2.Value
    smallest: int
    largest: int
    time_unit: TimeUnit
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[_histogram_pb2.ColumnType, str]] = ..., null_value: _Optional[_Union[_question_pb2.Value, _Mapping]] = ..., smallest: _Optional[int] = ..., largest: _Optional[int] = ..., time_unit: _Optional[_Union[TimeUnit, str]] = ...) -> None: ...

class ReadValue(_message.Message):
    __slots__ = ("name", "type", "null_value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NULL_VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: ValueType
    null_value: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[ValueType, str]] = ..., null_value: _Optional[str] = ...) -> None: ...

class TranslateQueryResponse(_message.Message):
    __slots__ = ("plan", "plan_expires_at", "engine_queries", "table", "columns", "row_limit", "worst_case_cost", "query_id", "view_id", "audience_rows", "audience", "parameters", "reserve_first", "count_alias", "reads", "selected", "version_is_fixed", "requested_k", "information_per_element", "bounded_copy", "unfinished", "sums", "quantiles", "bins", "own_counts", "stream", "free", "price")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    PLAN_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    ENGINE_QUERIES_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ROW_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WORST_CASE_COST_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    VIEW_ID_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_ROWS_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    RESERVE_FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_ALIAS_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    SELECTED_FIELD_NUMBER: _ClassVar[int]
    VERSION_IS_FIXED_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_K_FIELD_NUMBER: _ClassVar[int]
    INFORMATION_PER_ELEMENT_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_COPY_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    BINS_FIELD_NUMBER: _ClassVar[int]
    OWN_COUNTS_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    plan: bytes
    plan_expires_at: _timestamp_pb2.Timestamp
    engine_queries: _containers.RepeatedCompositeFieldContainer[EngineQuery]
    table: str
    columns: _containers.RepeatedCompositeFieldContainer[_histogram_pb2.Column]
    row_limit: int
    worst_case_cost: _cost_pb2.Cost
    query_id: str
    view_id: str
    audience_rows: str
    audience: str
    parameters: MechanismParameters
    reserve_first: bool
    count_alias: str
    reads: _containers.RepeatedCompositeFieldContainer[ReadColumn]
    selected: _containers.RepeatedScalarFieldContainer[int]
    version_is_fixed: bool
    requested_k: int
    information_per_element: int
    bounded_copy: BoundedCopy
    unfinished: Bill
    sums: _containers.RepeatedCompositeFieldContainer[ReadValue]
    quantiles: ReadValue
    bins: _containers.RepeatedCompositeFieldContainer[ReadValue]
    own_counts: int
    stream: ClosedStream
    free: FreeAnswer
    price: EstimateCostResponse
    def __init__(self, plan: _Optional[bytes] = ..., plan_expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., engine_queries: _Optional[_Iterable[_Union[EngineQuery, _Mapping]]] = ..., table: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[_histogram_pb2.Column, _Mapping]]] = ..., row_limit: _Optional[int] = ..., worst_case_cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., query_id: _Optional[str] = ..., view_id: _Optional[str] = ..., audience_rows: _Optional[str] = ..., audience: _Optional[str] = ..., parameters: _Optional[_Union[MechanismParameters, _Mapping]] = ..., reserve_first: bool = ..., count_alias: _Optional[str] = ..., reads: _Optional[_Iterable[_Union[ReadColumn, _Mapping]]] = ..., selected: _Optional[_Iterable[int]] = ..., version_is_fixed: bool = ..., requested_k: _Optional[int] = ..., information_per_element: _Optional[int] = ..., bounded_copy: _Optional[_Union[BoundedCopy, _Mapping]] = ..., unfinished: _Optional[_Union[Bill, _Mapping]] = ..., sums: _Optional[_Iterable[_Union[ReadValue, _Mapping]]] = ..., quantiles: _Optional[_Union[ReadValue, _Mapping]] = ..., bins: _Optional[_Iterable[_Union[ReadValue, _Mapping]]] = ..., own_counts: _Optional[int] = ..., stream: _Optional[_Union[ClosedStream, _Mapping]] = ..., free: _Optional[_Union[FreeAnswer, _Mapping]] = ..., price: _Optional[_Union[EstimateCostResponse, _Mapping]] = ...) -> None: ...

class FreeAnswer(_message.Message):
    __slots__ = ("shown", "elements")
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    shown: Shown
    elements: ShownElements
    def __init__(self, shown: _Optional[_Union[Shown, _Mapping]] = ..., elements: _Optional[_Union[ShownElements, _Mapping]] = ...) -> None: ...

class Bill(_message.Message):
    __slots__ = ("cost", "release_id", "query_id", "policy_statement", "charge_ticket")
    COST_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    CHARGE_TICKET_FIELD_NUMBER: _ClassVar[int]
    cost: _cost_pb2.Cost
    release_id: str
    query_id: str
    policy_statement: str
    charge_ticket: bytes
    def __init__(self, cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., release_id: _Optional[str] = ..., query_id: _Optional[str] = ..., policy_statement: _Optional[str] = ..., charge_ticket: _Optional[bytes] = ...) -> None: ...

class EstimateCostRequest(_message.Message):
    __slots__ = ("question",)
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    question: _question_pb2.Question
    def __init__(self, question: _Optional[_Union[_question_pb2.Question, _Mapping]] = ...) -> None: ...

class EstimateCostResponse(_message.Message):
    __slots__ = ("estimate", "engine_queries", "audience")
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_QUERIES_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    estimate: Estimate
    engine_queries: _containers.RepeatedCompositeFieldContainer[EngineQuery]
    audience: str
    def __init__(self, estimate: _Optional[_Union[Estimate, _Mapping]] = ..., engine_queries: _Optional[_Iterable[_Union[EngineQuery, _Mapping]]] = ..., audience: _Optional[str] = ...) -> None: ...

class Estimate(_message.Message):
    __slots__ = ("worst_case_cost", "parameters", "statements", "requested_k", "accuracy")
    WORST_CASE_COST_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_K_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    worst_case_cost: _cost_pb2.Cost
    parameters: MechanismParameters
    statements: _containers.RepeatedCompositeFieldContainer[Statement]
    requested_k: int
    accuracy: ExpectedAccuracy
    def __init__(self, worst_case_cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., parameters: _Optional[_Union[MechanismParameters, _Mapping]] = ..., statements: _Optional[_Iterable[_Union[Statement, _Mapping]]] = ..., requested_k: _Optional[int] = ..., accuracy: _Optional[_Union[ExpectedAccuracy, _Mapping]] = ...) -> None: ...

class ExpectedAccuracy(_message.Message):
    __slots__ = ("half_width", "mean_error", "found_mostly", "is_fixed", "ordered_mostly", "found_half", "prices")
    HALF_WIDTH_FIELD_NUMBER: _ClassVar[int]
    MEAN_ERROR_FIELD_NUMBER: _ClassVar[int]
    FOUND_MOSTLY_FIELD_NUMBER: _ClassVar[int]
    IS_FIXED_FIELD_NUMBER: _ClassVar[int]
    ORDERED_MOSTLY_FIELD_NUMBER: _ClassVar[int]
    FOUND_HALF_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    half_width: int
    mean_error: float
    found_mostly: int
    is_fixed: bool
    ordered_mostly: int
    found_half: int
    prices: _containers.RepeatedCompositeFieldContainer[ExpectedPrice]
    def __init__(self, half_width: _Optional[int] = ..., mean_error: _Optional[float] = ..., found_mostly: _Optional[int] = ..., is_fixed: bool = ..., ordered_mostly: _Optional[int] = ..., found_half: _Optional[int] = ..., prices: _Optional[_Iterable[_Union[ExpectedPrice, _Mapping]]] = ...) -> None: ...

class ExpectedPrice(_message.Message):
    __slots__ = ("above", "found", "information")
    ABOVE_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    above: int
    found: float
    information: float
    def __init__(self, above: _Optional[int] = ..., found: _Optional[float] = ..., information: _Optional[float] = ...) -> None: ...

class AddNoiseRequest(_message.Message):
    __slots__ = ("header", "chunk", "end")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    header: ReleaseHeader
    chunk: _histogram_pb2.Histogram
    end: ReleaseEnd
    def __init__(self, header: _Optional[_Union[ReleaseHeader, _Mapping]] = ..., chunk: _Optional[_Union[_histogram_pb2.Histogram, _Mapping]] = ..., end: _Optional[_Union[ReleaseEnd, _Mapping]] = ...) -> None: ...

class ReleaseHeader(_message.Message):
    __slots__ = ("plan", "data_version", "confidence", "keep")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    DATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    plan: bytes
    data_version: str
    confidence: float
    keep: bool
    def __init__(self, plan: _Optional[bytes] = ..., data_version: _Optional[str] = ..., confidence: _Optional[float] = ..., keep: bool = ...) -> None: ...

class ReleaseEnd(_message.Message):
    __slots__ = ("row_count",)
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    row_count: int
    def __init__(self, row_count: _Optional[int] = ...) -> None: ...

class AddNoiseResponse(_message.Message):
    __slots__ = ("shown", "kept", "end", "next")
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    shown: ShownElements
    kept: KeptElements
    end: Release
    next: NextLook
    def __init__(self, shown: _Optional[_Union[ShownElements, _Mapping]] = ..., kept: _Optional[_Union[KeptElements, _Mapping]] = ..., end: _Optional[_Union[Release, _Mapping]] = ..., next: _Optional[_Union[NextLook, _Mapping]] = ...) -> None: ...

class NextLook(_message.Message):
    __slots__ = ("plan", "engine_queries", "row_limit")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ENGINE_QUERIES_FIELD_NUMBER: _ClassVar[int]
    ROW_LIMIT_FIELD_NUMBER: _ClassVar[int]
    plan: bytes
    engine_queries: _containers.RepeatedCompositeFieldContainer[EngineQuery]
    row_limit: int
    def __init__(self, plan: _Optional[bytes] = ..., engine_queries: _Optional[_Iterable[_Union[EngineQuery, _Mapping]]] = ..., row_limit: _Optional[int] = ...) -> None: ...

class AddNoiseUnaryRequest(_message.Message):
    __slots__ = ("header", "histogram")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    HISTOGRAM_FIELD_NUMBER: _ClassVar[int]
    header: ReleaseHeader
    histogram: _histogram_pb2.Histogram
    def __init__(self, header: _Optional[_Union[ReleaseHeader, _Mapping]] = ..., histogram: _Optional[_Union[_histogram_pb2.Histogram, _Mapping]] = ...) -> None: ...

class AddNoiseUnaryResponse(_message.Message):
    __slots__ = ("release", "next")
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    release: Release
    next: NextLook
    def __init__(self, release: _Optional[_Union[Release, _Mapping]] = ..., next: _Optional[_Union[NextLook, _Mapping]] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ("shown", "elements", "rows", "bill", "kept")
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BILL_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    shown: Shown
    elements: ShownElements
    rows: _containers.RepeatedScalarFieldContainer[int]
    bill: Bill
    kept: Kept
    def __init__(self, shown: _Optional[_Union[Shown, _Mapping]] = ..., elements: _Optional[_Union[ShownElements, _Mapping]] = ..., rows: _Optional[_Iterable[int]] = ..., bill: _Optional[_Union[Bill, _Mapping]] = ..., kept: _Optional[_Union[Kept, _Mapping]] = ...) -> None: ...

class Shown(_message.Message):
    __slots__ = ("columns", "count_alias", "requested_k", "element_count", "ended_in_bottom", "bottom", "parameters", "interval_kind", "confidence", "cost", "data_version", "release_id", "query_id", "key_id", "total", "statements", "selected", "audience_rows")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    COUNT_ALIAS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_K_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    ENDED_IN_BOTTOM_FIELD_NUMBER: _ClassVar[int]
    BOTTOM_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_KIND_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    DATA_VERSION_FIELD_NUMBER: _ClassVar[int]
    RELEASE_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    SELECTED_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_ROWS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[_histogram_pb2.Column]
    count_alias: str
    requested_k: int
    element_count: int
    ended_in_bottom: bool
    bottom: int
    parameters: MechanismParameters
    interval_kind: IntervalKind
    confidence: float
    cost: _cost_pb2.Cost
    data_version: str
    release_id: str
    query_id: str
    key_id: str
    total: NoisyTotal
    statements: _containers.RepeatedCompositeFieldContainer[Statement]
    selected: _containers.RepeatedScalarFieldContainer[int]
    audience_rows: str
    def __init__(self, columns: _Optional[_Iterable[_Union[_histogram_pb2.Column, _Mapping]]] = ..., count_alias: _Optional[str] = ..., requested_k: _Optional[int] = ..., element_count: _Optional[int] = ..., ended_in_bottom: bool = ..., bottom: _Optional[int] = ..., parameters: _Optional[_Union[MechanismParameters, _Mapping]] = ..., interval_kind: _Optional[_Union[IntervalKind, str]] = ..., confidence: _Optional[float] = ..., cost: _Optional[_Union[_cost_pb2.Cost, _Mapping]] = ..., data_version: _Optional[str] = ..., release_id: _Optional[str] = ..., query_id: _Optional[str] = ..., key_id: _Optional[str] = ..., total: _Optional[_Union[NoisyTotal, _Mapping]] = ..., statements: _Optional[_Iterable[_Union[Statement, _Mapping]]] = ..., selected: _Optional[_Iterable[int]] = ..., audience_rows: _Optional[str] = ...) -> None: ...

class Statement(_message.Message):
    __slots__ = ("code", "text", "column", "values")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    code: str
    text: str
    column: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, code: _Optional[str] = ..., text: _Optional[str] = ..., column: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class ShownElements(_message.Message):
    __slots__ = ("columns", "noisy_counts", "noise_lower", "noise_upper", "noisy_numerators", "noisy_denominator", "aggregates", "quantiles")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    NOISY_COUNTS_FIELD_NUMBER: _ClassVar[int]
    NOISE_LOWER_FIELD_NUMBER: _ClassVar[int]
    NOISE_UPPER_FIELD_NUMBER: _ClassVar[int]
    NOISY_NUMERATORS_FIELD_NUMBER: _ClassVar[int]
    NOISY_DENOMINATOR_FIELD_NUMBER: _ClassVar[int]
    AGGREGATES_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[_histogram_pb2.ElementColumn]
    noisy_counts: _containers.RepeatedScalarFieldContainer[int]
    noise_lower: _containers.RepeatedScalarFieldContainer[int]
    noise_upper: _containers.RepeatedScalarFieldContainer[int]
    noisy_numerators: _containers.RepeatedScalarFieldContainer[int]
    noisy_denominator: int
    aggregates: _containers.RepeatedCompositeFieldContainer[AggregateValues]
    quantiles: _containers.RepeatedCompositeFieldContainer[QuantileValues]
    def __init__(self, columns: _Optional[_Iterable[_Union[_histogram_pb2.ElementColumn, _Mapping]]] = ..., noisy_counts: _Optional[_Iterable[int]] = ..., noise_lower: _Optional[_Iterable[int]] = ..., noise_upper: _Optional[_Iterable[int]] = ..., noisy_numerators: _Optional[_Iterable[int]] = ..., noisy_denominator: _Optional[int] = ..., aggregates: _Optional[_Iterable[_Union[AggregateValues, _Mapping]]] = ..., quantiles: _Optional[_Iterable[_Union[QuantileValues, _Mapping]]] = ...) -> None: ...

class Kept(_message.Message):
    __slots__ = ("bill", "key_id", "element_count", "ended_in_bottom", "bottom", "total", "elements")
    BILL_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    ENDED_IN_BOTTOM_FIELD_NUMBER: _ClassVar[int]
    BOTTOM_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    bill: Bill
    key_id: str
    element_count: int
    ended_in_bottom: bool
    bottom: int
    total: int
    elements: KeptElements
    def __init__(self, bill: _Optional[_Union[Bill, _Mapping]] = ..., key_id: _Optional[str] = ..., element_count: _Optional[int] = ..., ended_in_bottom: bool = ..., bottom: _Optional[int] = ..., total: _Optional[int] = ..., elements: _Optional[_Union[KeptElements, _Mapping]] = ...) -> None: ...

class KeptElements(_message.Message):
    __slots__ = ("columns", "noisy_counts", "noisy_numerators", "noisy_denominator", "sums", "cells")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    NOISY_COUNTS_FIELD_NUMBER: _ClassVar[int]
    NOISY_NUMERATORS_FIELD_NUMBER: _ClassVar[int]
    NOISY_DENOMINATOR_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[_histogram_pb2.ElementColumn]
    noisy_counts: _containers.RepeatedScalarFieldContainer[int]
    noisy_numerators: _containers.RepeatedScalarFieldContainer[int]
    noisy_denominator: int
    sums: _containers.RepeatedCompositeFieldContainer[_histogram_pb2.CentredSums]
    cells: _containers.RepeatedCompositeFieldContainer[ChosenCells]
    def __init__(self, columns: _Optional[_Iterable[_Union[_histogram_pb2.ElementColumn, _Mapping]]] = ..., noisy_counts: _Optional[_Iterable[int]] = ..., noisy_numerators: _Optional[_Iterable[int]] = ..., noisy_denominator: _Optional[int] = ..., sums: _Optional[_Iterable[_Union[_histogram_pb2.CentredSums, _Mapping]]] = ..., cells: _Optional[_Iterable[_Union[ChosenCells, _Mapping]]] = ...) -> None: ...

class AggregateValues(_message.Message):
    __slots__ = ("steps", "exact")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    steps: SumSteps
    exact: ExactNumbers
    def __init__(self, steps: _Optional[_Union[SumSteps, _Mapping]] = ..., exact: _Optional[_Union[ExactNumbers, _Mapping]] = ...) -> None: ...

class SumSteps(_message.Message):
    __slots__ = ("values", "lower", "upper")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    lower: _containers.RepeatedScalarFieldContainer[int]
    upper: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, values: _Optional[_Iterable[int]] = ..., lower: _Optional[_Iterable[int]] = ..., upper: _Optional[_Iterable[int]] = ...) -> None: ...

class ExactNumbers(_message.Message):
    __slots__ = ("values", "lower", "upper")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    lower: _containers.RepeatedScalarFieldContainer[str]
    upper: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Iterable[str]] = ..., lower: _Optional[_Iterable[str]] = ..., upper: _Optional[_Iterable[str]] = ...) -> None: ...

class NoisyTotal(_message.Message):
    __slots__ = ("count", "noise_lower", "noise_upper")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NOISE_LOWER_FIELD_NUMBER: _ClassVar[int]
    NOISE_UPPER_FIELD_NUMBER: _ClassVar[int]
    count: int
    noise_lower: int
    noise_upper: int
    def __init__(self, count: _Optional[int] = ..., noise_lower: _Optional[int] = ..., noise_upper: _Optional[int] = ...) -> None: ...

class ShowReleaseRequest(_message.Message):
    __slots__ = ("header", "chunk", "end")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    header: KeptHeader
    chunk: KeptChunk
    end: ReleaseEnd
    def __init__(self, header: _Optional[_Union[KeptHeader, _Mapping]] = ..., chunk: _Optional[_Union[KeptChunk, _Mapping]] = ..., end: _Optional[_Union[ReleaseEnd, _Mapping]] = ...) -> None: ...

class KeptHeader(_message.Message):
    __slots__ = ("plan", "confidence", "kept")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    plan: bytes
    confidence: float
    kept: Kept
    def __init__(self, plan: _Optional[bytes] = ..., confidence: _Optional[float] = ..., kept: _Optional[_Union[Kept, _Mapping]] = ...) -> None: ...

class KeptChunk(_message.Message):
    __slots__ = ("elements", "element_ranks")
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_RANKS_FIELD_NUMBER: _ClassVar[int]
    elements: KeptElements
    element_ranks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, elements: _Optional[_Union[KeptElements, _Mapping]] = ..., element_ranks: _Optional[_Iterable[int]] = ...) -> None: ...

class ShowReleaseResponse(_message.Message):
    __slots__ = ("shown", "end")
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    shown: ShownElements
    end: Release
    def __init__(self, shown: _Optional[_Union[ShownElements, _Mapping]] = ..., end: _Optional[_Union[Release, _Mapping]] = ...) -> None: ...

class PublishedDomain(_message.Message):
    __slots__ = ("rho", "delta")
    RHO_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    rho: str
    delta: str
    def __init__(self, rho: _Optional[str] = ..., delta: _Optional[str] = ...) -> None: ...

class SharedBudget(_message.Message):
    __slots__ = ("information", "calls", "policy_statements")
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    information: int
    calls: int
    policy_statements: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, information: _Optional[int] = ..., calls: _Optional[int] = ..., policy_statements: _Optional[_Iterable[str]] = ...) -> None: ...

class DescribeGuaranteeRequest(_message.Message):
    __slots__ = ("unit_id", "information", "calls", "slack", "domains", "policy_statements", "shared")
    UNIT_ID_FIELD_NUMBER: _ClassVar[int]
    INFORMATION_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    SLACK_FIELD_NUMBER: _ClassVar[int]
    DOMAINS_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    unit_id: str
    information: int
    calls: int
    slack: str
    domains: _containers.RepeatedCompositeFieldContainer[PublishedDomain]
    policy_statements: _containers.RepeatedScalarFieldContainer[str]
    shared: SharedBudget
    def __init__(self, unit_id: _Optional[str] = ..., information: _Optional[int] = ..., calls: _Optional[int] = ..., slack: _Optional[str] = ..., domains: _Optional[_Iterable[_Union[PublishedDomain, _Mapping]]] = ..., policy_statements: _Optional[_Iterable[str]] = ..., shared: _Optional[_Union[SharedBudget, _Mapping]] = ...) -> None: ...

class BudgetWorth(_message.Message):
    __slots__ = ("epsilon", "delta", "domain_count", "times")
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_COUNT_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    epsilon: float
    delta: float
    domain_count: int
    times: int
    def __init__(self, epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., domain_count: _Optional[int] = ..., times: _Optional[int] = ...) -> None: ...

class DescribeGuaranteeResponse(_message.Message):
    __slots__ = ("worth", "shared")
    WORTH_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    worth: BudgetWorth
    shared: BudgetWorth
    def __init__(self, worth: _Optional[_Union[BudgetWorth, _Mapping]] = ..., shared: _Optional[_Union[BudgetWorth, _Mapping]] = ...) -> None: ...

class GetCatalogRequest(_message.Message):
    __slots__ = ("table", "page_size", "page_token", "audience")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    table: str
    page_size: int
    page_token: str
    audience: _question_pb2.Audience
    def __init__(self, table: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., audience: _Optional[_Union[_question_pb2.Audience, _Mapping]] = ...) -> None: ...

class GetCatalogResponse(_message.Message):
    __slots__ = ("tables", "next_page_token", "epsilon_per", "delta", "unit_id", "count_noise", "policy_id", "blocks", "audience")
    TABLES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EPSILON_PER_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    UNIT_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_NOISE_FIELD_NUMBER: _ClassVar[int]
    POLICY_ID_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedCompositeFieldContainer[CatalogTable]
    next_page_token: str
    epsilon_per: str
    delta: str
    unit_id: str
    count_noise: CountNoise
    policy_id: str
    blocks: Blocks
    audience: str
    def __init__(self, tables: _Optional[_Iterable[_Union[CatalogTable, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., epsilon_per: _Optional[str] = ..., delta: _Optional[str] = ..., unit_id: _Optional[str] = ..., count_noise: _Optional[_Union[CountNoise, str]] = ..., policy_id: _Optional[str] = ..., blocks: _Optional[_Union[Blocks, _Mapping]] = ..., audience: _Optional[str] = ...) -> None: ...

class Blocks(_message.Message):
    __slots__ = ("name", "values", "ids", "rest", "moves", "all_may_pay")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    REST_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    ALL_MAY_PAY_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: _histogram_pb2.ElementColumn
    ids: _containers.RepeatedScalarFieldContainer[str]
    rest: str
    moves: int
    all_may_pay: bool
    def __init__(self, name: _Optional[str] = ..., values: _Optional[_Union[_histogram_pb2.ElementColumn, _Mapping]] = ..., ids: _Optional[_Iterable[str]] = ..., rest: _Optional[str] = ..., moves: _Optional[int] = ..., all_may_pay: bool = ...) -> None: ...

class CatalogTable(_message.Message):
    __slots__ = ("name", "member", "block_column", "measures", "time", "consistency", "columns", "contributions", "values", "quantiles", "functions")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    BLOCK_COLUMN_FIELD_NUMBER: _ClassVar[int]
    MEASURES_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    member: str
    block_column: str
    measures: _containers.RepeatedCompositeFieldContainer[CatalogMeasure]
    time: CatalogTime
    consistency: Consistency
    columns: _containers.RepeatedCompositeFieldContainer[CatalogColumn]
    contributions: CatalogContributions
    values: _containers.RepeatedCompositeFieldContainer[CatalogValue]
    quantiles: _containers.RepeatedCompositeFieldContainer[QuantileColumn]
    functions: _containers.RepeatedCompositeFieldContainer[CatalogFunction]
    def __init__(self, name: _Optional[str] = ..., member: _Optional[str] = ..., block_column: _Optional[str] = ..., measures: _Optional[_Iterable[_Union[CatalogMeasure, _Mapping]]] = ..., time: _Optional[_Union[CatalogTime, _Mapping]] = ..., consistency: _Optional[_Union[Consistency, str]] = ..., columns: _Optional[_Iterable[_Union[CatalogColumn, _Mapping]]] = ..., contributions: _Optional[_Union[CatalogContributions, _Mapping]] = ..., values: _Optional[_Iterable[_Union[CatalogValue, _Mapping]]] = ..., quantiles: _Optional[_Iterable[_Union[QuantileColumn, _Mapping]]] = ..., functions: _Optional[_Iterable[_Union[CatalogFunction, _Mapping]]] = ...) -> None: ...

class CatalogFunction(_message.Message):
    __slots__ = ("code", "text", "meaning", "sql")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MEANING_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    code: str
    text: str
    meaning: str
    sql: str
    def __init__(self, code: _Optional[str] = ..., text: _Optional[str] = ..., meaning: _Optional[str] = ..., sql: _Optional[str] = ...) -> None: ...

class CatalogContributions(_message.Message):
    __slots__ = ("bounded_by", "delta", "periods", "units", "min_count", "longest_list", "least_units", "most_units", "largest_cut")
    BOUNDED_BY_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    MIN_COUNT_FIELD_NUMBER: _ClassVar[int]
    LONGEST_LIST_FIELD_NUMBER: _ClassVar[int]
    LEAST_UNITS_FIELD_NUMBER: _ClassVar[int]
    MOST_UNITS_FIELD_NUMBER: _ClassVar[int]
    LARGEST_CUT_FIELD_NUMBER: _ClassVar[int]
    bounded_by: BoundedBy
    delta: int
    periods: int
    units: int
    min_count: int
    longest_list: int
    least_units: int
    most_units: int
    largest_cut: str
    def __init__(self, bounded_by: _Optional[_Union[BoundedBy, str]] = ..., delta: _Optional[int] = ..., periods: _Optional[int] = ..., units: _Optional[int] = ..., min_count: _Optional[int] = ..., longest_list: _Optional[int] = ..., least_units: _Optional[int] = ..., most_units: _Optional[int] = ..., largest_cut: _Optional[str] = ...) -> None: ...

class CatalogValue(_message.Message):
    __slots__ = ("name", "quantum", "lower", "upper", "row_lower", "row_upper")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    ROW_LOWER_FIELD_NUMBER: _ClassVar[int]
    ROW_UPPER_FIELD_NUMBER: _ClassVar[int]
    name: str
    quantum: str
    lower: str
    upper: str
    row_lower: str
    row_upper: str
    def __init__(self, name: _Optional[str] = ..., quantum: _Optional[str] = ..., lower: _Optional[str] = ..., upper: _Optional[str] = ..., row_lower: _Optional[str] = ..., row_upper: _Optional[str] = ...) -> None: ...

class CatalogMeasure(_message.Message):
    __slots__ = ("measure", "tau", "clipped", "distinct_of")
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    TAU_FIELD_NUMBER: _ClassVar[int]
    CLIPPED_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_OF_FIELD_NUMBER: _ClassVar[int]
    measure: _question_pb2.Measure
    tau: int
    clipped: bool
    distinct_of: str
    def __init__(self, measure: _Optional[_Union[_question_pb2.Measure, str]] = ..., tau: _Optional[int] = ..., clipped: bool = ..., distinct_of: _Optional[str] = ...) -> None: ...

class CatalogTime(_message.Message):
    __slots__ = ("column", "unit", "zone", "refresh", "closed_before", "buckets", "parts")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    REFRESH_FIELD_NUMBER: _ClassVar[int]
    CLOSED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    column: str
    unit: TimeUnit
    zone: str
    refresh: RefreshPeriod
    closed_before: int
    buckets: _containers.RepeatedScalarFieldContainer[str]
    parts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, column: _Optional[str] = ..., unit: _Optional[_Union[TimeUnit, str]] = ..., zone: _Optional[str] = ..., refresh: _Optional[_Union[RefreshPeriod, str]] = ..., closed_before: _Optional[int] = ..., buckets: _Optional[_Iterable[str]] = ..., parts: _Optional[_Iterable[str]] = ...) -> None: ...

class CatalogColumn(_message.Message):
    __slots__ = ("name", "type", "mechanism", "filters", "domain_size", "domain", "delta", "typical", "null_value", "published", "looked_up_by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_SIZE_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    TYPICAL_FIELD_NUMBER: _ClassVar[int]
    NULL_VALUE_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    LOOKED_UP_BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: _histogram_pb2.ColumnType
    mechanism: Mechanism
    filters: _containers.RepeatedScalarFieldContainer[FilterOperator]
    domain_size: int
    domain: _histogram_pb2.ElementColumn
    delta: int
    typical: int
    null_value: _question_pb2.Value
    published: PublishedDomain
    looked_up_by: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[_Union[_histogram_pb2.ColumnType, str]] = ..., mechanism: _Optional[_Union[Mechanism, str]] = ..., filters: _Optional[_Iterable[_Union[FilterOperator, str]]] = ..., domain_size: _Optional[int] = ..., domain: _Optional[_Union[_histogram_pb2.ElementColumn, _Mapping]] = ..., delta: _Optional[int] = ..., typical: _Optional[int] = ..., null_value: _Optional[_Union[_question_pb2.Value, _Mapping]] = ..., published: _Optional[_Union[PublishedDomain, _Mapping]] = ..., looked_up_by: _Optional[str] = ...) -> None: ...

class QuantileColumn(_message.Message):
    __slots__ = ("name", "quantum", "scale", "lower", "upper", "cells")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    quantum: str
    scale: GridScale
    lower: str
    upper: str
    cells: int
    def __init__(self, name: _Optional[str] = ..., quantum: _Optional[str] = ..., scale: _Optional[_Union[GridScale, str]] = ..., lower: _Optional[str] = ..., upper: _Optional[str] = ..., cells: _Optional[int] = ...) -> None: ...

class ShownQuantile(_message.Message):
    __slots__ = ("function", "q", "alias", "rank_error", "cuts")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    RANK_ERROR_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    function: RankFunction
    q: str
    alias: str
    rank_error: str
    cuts: _containers.RepeatedCompositeFieldContainer[RankCut]
    def __init__(self, function: _Optional[_Union[RankFunction, str]] = ..., q: _Optional[str] = ..., alias: _Optional[str] = ..., rank_error: _Optional[str] = ..., cuts: _Optional[_Iterable[_Union[RankCut, _Mapping]]] = ...) -> None: ...

class RankCut(_message.Message):
    __slots__ = ("position", "part")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    position: int
    part: str
    def __init__(self, position: _Optional[int] = ..., part: _Optional[str] = ...) -> None: ...

class Quantiles(_message.Message):
    __slots__ = ("column", "shown", "spare_values", "contributions", "ordered_by", "member_value")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    SPARE_VALUES_FIELD_NUMBER: _ClassVar[int]
    CONTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    ORDERED_BY_FIELD_NUMBER: _ClassVar[int]
    MEMBER_VALUE_FIELD_NUMBER: _ClassVar[int]
    column: QuantileColumn
    shown: _containers.RepeatedCompositeFieldContainer[ShownQuantile]
    spare_values: int
    contributions: Contributions
    ordered_by: int
    member_value: MemberValue
    def __init__(self, column: _Optional[_Union[QuantileColumn, _Mapping]] = ..., shown: _Optional[_Iterable[_Union[ShownQuantile, _Mapping]]] = ..., spare_values: _Optional[int] = ..., contributions: _Optional[_Union[Contributions, _Mapping]] = ..., ordered_by: _Optional[int] = ..., member_value: _Optional[_Union[MemberValue, str]] = ...) -> None: ...

class QuantileValues(_message.Message):
    __slots__ = ("values", "lower", "upper", "rank_error")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    RANK_ERROR_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[str]
    lower: _containers.RepeatedScalarFieldContainer[str]
    upper: _containers.RepeatedScalarFieldContainer[str]
    rank_error: str
    def __init__(self, values: _Optional[_Iterable[str]] = ..., lower: _Optional[_Iterable[str]] = ..., upper: _Optional[_Iterable[str]] = ..., rank_error: _Optional[str] = ...) -> None: ...

class ChosenCells(_message.Message):
    __slots__ = ("cells",)
    CELLS_FIELD_NUMBER: _ClassVar[int]
    cells: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, cells: _Optional[_Iterable[int]] = ...) -> None: ...
