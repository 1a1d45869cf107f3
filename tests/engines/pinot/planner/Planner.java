import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.calcite.DataContext;
import org.apache.calcite.adapter.enumerable.CallImplementor;
import org.apache.calcite.adapter.enumerable.EnumUtils;
import org.apache.calcite.adapter.enumerable.NullPolicy;
import org.apache.calcite.adapter.enumerable.RexImpTable;
import org.apache.calcite.avatica.util.ByteString;
import org.apache.calcite.avatica.util.Casing;
import org.apache.calcite.avatica.util.Quoting;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Linq4j;
import org.apache.calcite.linq4j.tree.Expression;
import org.apache.calcite.linq4j.tree.Expressions;
import org.apache.calcite.plan.hep.HepPlanner;
import org.apache.calcite.plan.hep.HepProgramBuilder;
import org.apache.calcite.rel.RelNode;
import org.apache.calcite.rel.RelVisitor;
import org.apache.calcite.rel.core.Aggregate;
import org.apache.calcite.rel.core.AggregateCall;
import org.apache.calcite.rel.rules.CoreRules;
import org.apache.calcite.rel.type.RelDataType;
import org.apache.calcite.rel.type.RelDataTypeFactory;
import org.apache.calcite.schema.FunctionParameter;
import org.apache.calcite.schema.ImplementableFunction;
import org.apache.calcite.schema.ScannableTable;
import org.apache.calcite.schema.SchemaPlus;
import org.apache.calcite.schema.impl.AbstractTable;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.calcite.sql.type.SqlTypeName;
import org.apache.calcite.sql.validate.SqlConformanceEnum;
import org.apache.calcite.tools.FrameworkConfig;
import org.apache.calcite.tools.Frameworks;

import org.apache.calcite.tools.RelRunners;
import org.apache.calcite.util.Litmus;
import org.apache.pinot.common.function.scalar.DataTypeConversionFunctions;
import org.apache.pinot.common.function.scalar.DateTimeFunctions;
import org.apache.pinot.common.function.scalar.HashFunctions;
import org.apache.pinot.common.function.scalar.StringFunctions;
import org.apache.pinot.common.function.scalar.regexp.RegexpExtractVarFunctions;
import org.apache.pinot.spi.annotations.ScalarFunction;
import org.apache.pinot.spi.utils.CommonConstants.Broker.Request.QueryOptionKey;
import org.apache.pinot.sql.parsers.CalciteSqlParser;
import org.apache.pinot.sql.parsers.SqlNodeAndOptions;
import org.apache.pinot.sql.parsers.parser.SqlParserImpl;

/**
 * Reads queries with the parser of a Pinot release, and has the Calcite of that release validate, plan and run them,
 * with that release's own scalar functions.
 *
 * Standard input, in each line: {"tables": {name: {"columns": [[name, type], ..], "rows": [[value, ..], ..]}},
 * "queries": [text, ..]}. Standard output, in one line for each of these: {"answers": [..]}, for each query its options,
 * those among them that this Pinot does not know, columns, rows, and how many of its numbers Pinot's planner would make
 * filtered ones; or {"refused": text}, why one of them has none.
 */
public class Planner {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final SqlParser.Config GRAMMAR = SqlParser.config()
      .withParserFactory(SqlParserImpl.FACTORY)
      .withConformance(SqlConformanceEnum.BABEL)
      .withQuoting(Quoting.DOUBLE_QUOTE)
      .withUnquotedCasing(Casing.UNCHANGED)
      .withQuotedCasing(Casing.UNCHANGED);
  private static final String OPTIONS = "^(SET \\w+=('\\w+'|[-\\w]+); )*";
  private static final List<Class<?>> FUNCTIONS = List.of(
      DataTypeConversionFunctions.class, DateTimeFunctions.class, HashFunctions.class, StringFunctions.class,
      org.apache.pinot.common.function.scalar.string.StringFunctions.class);

  public static void main(String[] arguments) throws Exception {
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      ObjectNode response = JSON.createObjectNode();
      try {
        response.set("answers", answers(JSON.readTree(line)));
      } catch (Exception | AssertionError refused) {
        response.put("refused", String.valueOf(refused));
      }
      System.out.write(JSON.writeValueAsBytes(response));
      System.out.write('\n');
      System.out.flush();
    }
  }

  private static ArrayNode answers(JsonNode request) throws Exception {
    SchemaPlus schema = Frameworks.createRootSchema(false);
    request.get("tables").fields().forEachRemaining(each -> schema.add(each.getKey(), new Rows(each.getValue())));
    addFunctions(schema);
    ArrayNode answers = JSON.createArrayNode();
    for (JsonNode query : request.get("queries")) {
      answers.add(answer(schema, query.asText()));
    }
    return answers;
  }

  private static ObjectNode answer(SchemaPlus schema, String text) throws Exception {
    SqlNodeAndOptions parsed = CalciteSqlParser.compileToSqlNodeAndOptions(text);
    ObjectNode answer = JSON.createObjectNode();
    answer.set("options", JSON.valueToTree(parsed.getOptions()));
    Set<String> unknown = new HashSet<>(parsed.getOptions().keySet());
    unknown.removeAll(knownOptions());
    answer.set("unknown", JSON.valueToTree(unknown));
    FrameworkConfig config = Frameworks.newConfigBuilder().defaultSchema(schema).parserConfig(GRAMMAR).build();
    try (org.apache.calcite.tools.Planner planner = Frameworks.getPlanner(config)) {
      SqlNode node = planner.parse(text.replaceFirst(OPTIONS, ""));
      // Calcite plans exactly what Pinot's own entry point has read.
      node.equalsDeep(parsed.getSqlNode(), Litmus.THROW);
      RelNode plan = planner.rel(planner.validate(node)).project();
      answer.put("filtered", filtered(plan));
      try (PreparedStatement statement = RelRunners.run(plan)) {
        write(statement.executeQuery(), answer);
      }
    }
    return answer;
  }

  /** Counts the aggregates with a filter after the rules that Pinot's planner applies to aggregates. */
  private static int filtered(RelNode plan) {
    HepPlanner rules = new HepPlanner(new HepProgramBuilder()
        .addRuleInstance(CoreRules.AGGREGATE_REDUCE_FUNCTIONS)
        .addRuleInstance(CoreRules.AGGREGATE_CASE_TO_FILTER)
        .build());
    rules.setRoot(plan);
    int[] found = {0};
    new RelVisitor() {
      @Override
      public void visit(RelNode node, int place, RelNode parent) {
        if (node instanceof Aggregate aggregate) {
          found[0] += (int) aggregate.getAggCallList().stream().filter(AggregateCall::hasFilter).count();
        }
        super.visit(node, place, parent);
      }
    }.go(rules.findBestExp());
    return found[0];
  }

  private static void addFunctions(SchemaPlus schema) {
    for (Class<?> group : FUNCTIONS) {
      for (Method method : group.getMethods()) {
        if (method.isAnnotationPresent(ScalarFunction.class)) {
          schema.add(method.getName(), new PinotFunction(method));
        }
      }
    }
    // Of the two classes that Pinot has for it, this one keeps nothing from one call to the next.
    for (Method method : RegexpExtractVarFunctions.class.getMethods()) {
      if (method.isAnnotationPresent(ScalarFunction.class)) {
        schema.add("REGEXP_EXTRACT", new PinotFunction(method));
      }
    }
  }

  private static Set<String> knownOptions() throws IllegalAccessException {
    Set<String> known = new HashSet<>();
    for (Field field : QueryOptionKey.class.getFields()) {
      known.add(String.valueOf(field.get(null)));
    }
    return known;
  }

  private static void write(ResultSet result, ObjectNode answer) throws Exception {
    ResultSetMetaData columns = result.getMetaData();
    ArrayNode described = answer.putArray("columns");
    for (int i = 1; i <= columns.getColumnCount(); i++) {
      described.addArray().add(columns.getColumnLabel(i)).add(columns.getColumnTypeName(i));
    }
    ArrayNode rows = answer.putArray("rows");
    while (result.next()) {
      ArrayNode row = rows.addArray();
      for (int i = 1; i <= columns.getColumnCount(); i++) {
        row.addPOJO(result.getObject(i));
      }
    }
  }

  /** A scalar function of Pinot: Calcite holds bytes in an object of its own, Pinot in an array. */
  private record PinotFunction(Method method)
      implements org.apache.calcite.schema.ScalarFunction, ImplementableFunction {
    private record Parameter(int getOrdinal, Class<?> type) implements FunctionParameter {
      @Override
      public String getName() {
        return "p" + getOrdinal;
      }

      @Override
      public RelDataType getType(RelDataTypeFactory types) {
        return typeInCalcite(types, type);
      }

      @Override
      public boolean isOptional() {
        return false;
      }
    }

    @Override
    public RelDataType getReturnType(RelDataTypeFactory types) {
      return typeInCalcite(types, method.getReturnType());
    }

    @Override
    public List<FunctionParameter> getParameters() {
      List<FunctionParameter> parameters = new ArrayList<>();
      for (Class<?> type : method.getParameterTypes()) {
        parameters.add(new Parameter(parameters.size(), type));
      }
      return parameters;
    }

    @Override
    public CallImplementor getImplementor() {
      return RexImpTable.createImplementor((translator, call, operands) -> {
        List<Expression> given = new ArrayList<>();
        for (Class<?> type : method.getParameterTypes()) {
          Expression operand = operands.get(given.size());
          given.add(type == byte[].class ? Expressions.call(operand, "getBytes") : EnumUtils.convert(operand, type));
        }
        Expression result = Modifier.isStatic(method.getModifiers())
            ? Expressions.call(method, given)
            : Expressions.call(Expressions.new_(method.getDeclaringClass()), method, given);
        return method.getReturnType() == byte[].class ? Expressions.new_(ByteString.class, result) : result;
      }, NullPolicy.ANY, false);
    }

    private static RelDataType typeInCalcite(RelDataTypeFactory types, Class<?> type) {
      RelDataType found =
          type == byte[].class ? types.createSqlType(SqlTypeName.VARBINARY) : types.createJavaType(type);
      return types.createTypeWithNullability(found, false);
    }
  }

  /** A table of these rows; types are Calcite's names. */
  private static final class Rows extends AbstractTable implements ScannableTable {
    private final JsonNode table;

    Rows(JsonNode table) {
      this.table = table;
    }

    @Override
    public RelDataType getRowType(RelDataTypeFactory types) {
      RelDataTypeFactory.Builder row = types.builder();
      for (JsonNode column : table.get("columns")) {
        row.add(column.get(0).asText(), SqlTypeName.valueOf(column.get(1).asText()));
      }
      return row.build();
    }

    @Override
    public Enumerable<Object[]> scan(DataContext context) {
      List<Object[]> rows = new ArrayList<>();
      for (JsonNode row : table.get("rows")) {
        Object[] values = new Object[row.size()];
        for (int i = 0; i < values.length; i++) {
          values[i] = value(row.get(i), table.get("columns").get(i).get(1).asText());
        }
        rows.add(values);
      }
      return Linq4j.asEnumerable(rows);
    }

    private static Object value(JsonNode value, String type) {
      return switch (type) {
        case "VARCHAR" -> value.asText();
        // Calcite holds a timestamp as its milliseconds since 1970.
        case "BIGINT", "TIMESTAMP" -> value.asLong();
        case "INTEGER" -> value.asInt();
        case "BOOLEAN" -> value.asBoolean();
        // As texts: JSON has no infinity.
        case "DOUBLE" -> Double.valueOf(value.asText());
        default -> throw new IllegalArgumentException("no such type: " + type);
      };
    }
  }
}
